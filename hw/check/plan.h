// The data check's plan: a program's copies, sets, computations and collectives one after another,
// in an order that every process can follow, and what each must leave in memory. Pure.
//
// Nothing runs at the same time as anything else, so a wrong result is the operation's own fault
// and never a data race of the scenario; what the order of a pass should guarantee is not checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/check/content.h"
#include "scenarios/program/program.h"

namespace foretrace::hw {

/// Operations that one process issues together: one operation, the inside of an nccl_group, or
/// the calls of several ranks in one process that wait for each other.
struct CheckCall {
  std::uint32_t thread{};
  const Op* op{};
  std::uint64_t instance{};
  std::vector<std::int64_t> variables;
};

struct ExpectedPiece {
  BufferId buffer;
  Piece piece;
};

/// An expected single number, for reductions: their order of additions may show.
struct ExpectedNumber {
  BufferId buffer;
  DataType type = DataType::Float32;
  double value = 0;
  double tolerance = 0;  ///< relative
};

struct CheckStep {
  std::vector<CheckCall> calls;
  std::vector<ExpectedPiece> pieces;
  std::vector<ExpectedNumber> numbers;
};

struct CheckPlan {
  bool possible = true;
  std::string why_not;                        ///< when it is not possible
  std::vector<std::vector<CheckStep>> steps;  ///< by process
  std::uint64_t results = 0;                  ///< executions that leave a result in memory
  std::uint64_t expected = 0;                 ///< of them, those whose result is known beforehand
};

/// The pattern a buffer of a process is filled with before the check.
std::uint32_t pattern_seed(std::uint32_t process, BufferId buffer);

CheckPlan plan_check(const Program& program);

/// "1,200 of 1,240 results of copies, sets, sums and collectives were checked"
std::string summary_of(const CheckPlan& plan);

}  // namespace foretrace::hw
