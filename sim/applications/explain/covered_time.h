// How long regions take with the work that they start: a region ends when its host thread is
// through, which without a wait is before its kernels are.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "reports/timeline/timeline.h"
#include "scenarios/program/program.h"

namespace foretrace::explain {

/// In ns, of all executions of a region in a process.
struct Covered {
  /// That is in any execution, each from its first call to its end or, where that is later, to the
  /// end of the last device span that it called for.
  std::int64_t ns = 0;
  std::int64_t host_ns = 0;    ///< its host thread works between its calls (SpanClass::HostWork)
  std::int64_t device_ns = 0;  ///< something that it called for runs on a GPU
  /// Of the GPU that has most of it: one kernel runs and nothing else. 0 where several streams have
  /// kernels, which may run one beside the other.
  std::int64_t alone_ns = 0;
};

/// By a region's operation and process. Nodes of graphs belong to the last execution that had
/// begun. Regions that are meant to time issuing (`issue_only`) have none.
using CoveredTimes = std::map<std::pair<std::uint32_t, std::uint32_t>, Covered>;
CoveredTimes covered_times(const Program& program, const Timeline& timeline);
/// The same of the whole run, all processes: of host threads and GPUs the one that has most.
Covered covered_by_all(const Timeline& timeline);

}  // namespace foretrace::explain
