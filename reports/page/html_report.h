// The comparison as one self-contained HTML page: verdict and worst operations first, then the
// timeline with predicted lanes above measured ones, then every number; light and dark, no network.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reports/compare/compare.h"
#include "reports/page/lanes_layout.h"

namespace foretrace {

struct ReportRun {
  Comparison comparison;
  std::vector<Side> sides;          ///< one or two; with one there is nothing to compare
  std::vector<std::string> source;  ///< the scenario's lines; empty when they are not at hand
  std::string where;                ///< the directory or file that it was read from
};

/// Listed in place of its run.
struct UnreadRun {
  std::string where, why;
};

/// Several runs, or any that could not be read, get a table of all regions above them, the worst
/// first; their details are packed (packed.h) until somebody opens them.
std::string html_report(std::span<const ReportRun> runs, std::span<const UnreadRun> unread = {});

}  // namespace foretrace
