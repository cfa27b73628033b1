// Chrome Trace Event JSON in Kineto's dialect, one file per process, as PyTorch's profiler writes
// it: HTA, Perfetto and chrome://tracing read it. Host calls carry CUDA's names, kernels and copies
// Kineto's categories, and a call and its work share a correlation id and an "ac2g" arrow.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "reports/timeline/timeline.h"

namespace foretrace {

/// The processes that own lanes, ascending.
std::vector<std::uint32_t> processes_of(const Timeline& timeline);

/// What `process` did: its host threads and its devices' streams. Records of events on streams are
/// left out: Kineto has no row for them. Lanes that only a simulator shows are left out, too.
void write_kineto(const Timeline& timeline, std::uint32_t process, std::ostream& out);

}  // namespace foretrace
