// What a captured kernel moves and computes, from its operation's arguments: shapes and types, no
// data. hw/pytorch/operators/table.py says the same of a profiler's trace; the tables of
// models/kernels/ are made by that one and asked by this one, so that both must agree
// (tests/scenarios/captured/work_test.cc).
#pragma once

#include <cstdint>

#include "scenarios/captured/record.h"
#include "scenarios/program/captured_shape.h"
#include "scenarios/program/library_work.h"

namespace foretrace::captured {

struct Work {
  std::int64_t bytes = 0;  ///< read and written
  std::int64_t flops = 0;  ///< of closed libraries' calls; 0: what memory decides
  CapturedShape shape;     ///< name, grid and block left open
};

/// Bytes of all arguments (an element of stride 0 once) and of the result: as large as the
/// arguments broadcast, as what is written in place, as rows that are gathered, as attention's
/// queries. `threads` of the launch: what they take where an operation's indices are not shown.
Work work_of(const Signature& signature, std::uint64_t threads);

/// Of a call into cuDNN or another closed library by this operation: its word is the operation's
/// name, its type and what chooses its kernels: heads and causality, or taps, strides and groups.
Work closed_work_of(const Signature& signature);

}  // namespace foretrace::captured
