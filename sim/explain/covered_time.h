// How long regions take with the work that they start: a region ends when its host thread is
// through, which without a wait is before its kernels are.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "reports/timeline/timeline.h"
#include "scenarios/program/program.h"

namespace foretrace::explain {

/// ns, by a region's operation and process: the time that is in any execution of it, each from its
/// first call to its end or, where that is later, to the end of the last device span that it
/// called for. Nodes of graphs belong to the last execution that had begun. Regions that are meant
/// to time issuing (`issue_only`) have none.
using CoveredTimes = std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t>;
CoveredTimes covered_times(const Program& program, const Timeline& timeline);

}  // namespace foretrace::explain
