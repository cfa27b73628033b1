// What is refused before it is simulated, because it would take all memory or all day.
#pragma once

#include <vector>

#include "scenarios/program/program.h"
#include "scenarios/base/text/diagnostic.h"

namespace foretrace {

/// More executions of operations, all threads and processes together, are not simulated: each makes
/// two spans of 48 bytes.
inline constexpr std::uint64_t kMostExecuted = std::uint64_t{1} << 24;

/// Errors at the operations that make `program` too large: executions, times of more than an hour,
/// streams and other objects of all processes together. `runs`: which processes execute; empty:
/// all.
Diagnostics too_large_to_simulate(const Program& program, const std::vector<bool>& runs = {});

}  // namespace foretrace
