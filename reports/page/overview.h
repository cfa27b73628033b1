// The first screen of a page of many runs: every region, the worst first, and what could not be
// read.
#pragma once

#include <span>
#include <vector>

#include "reports/page/html_rows.h"

namespace foretrace {

/// "run3": the run's place in the page.
std::string run_id(std::size_t index);

/// Indices of `runs`: those that fail first, then by their worst |error|.
std::vector<std::size_t> worst_first(std::span<const ReportRun> runs);

/// What report.mustache shows above the runs.
MustacheData overview_data(std::span<const ReportRun> runs, std::span<const UnreadRun> unread);

}  // namespace foretrace
