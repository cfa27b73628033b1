// The comparison as one self-contained HTML page: verdict and worst operations first, then the
// timeline with predicted lanes above measured ones, then every number; light and dark, no network.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/compare/compare.h"
#include "reports/page/lanes_layout.h"

namespace foretrace {

/// What a run's time would be without something that slows it down: simulated by foretrace explain.
struct ReportCause {
  std::string name, change;
  double seconds = 0;
  double gain = 0;  ///< share of the run's time
};

/// A predicted training step as a whole.
struct ReportStep {
  std::string figure;  ///< its time
  std::string words;   ///< tokens/s, TFLOP/s, MFU
  std::string limit;   ///< shares of the time, and what it is limited by
  std::string memory;  ///< of a GPU, by part
  std::string left;    ///< what was not simulated; may be empty
};

struct ReportRun {
  Comparison comparison;
  std::vector<Side> sides;               ///< one or two; with one there is nothing to compare
  std::vector<std::string> source;       ///< the scenario's lines; empty when they are not at hand
  std::string where;                     ///< the directory or file that it was read from
  std::vector<ReportCause> causes = {};  ///< what gains most first
  std::string causes_headline = {};
  std::optional<ReportStep> step = {};
  // Rows that the page has not: of operations, overlaps (in its JSON), regions, the source's lines.
  std::size_t left_out = 0, left_out_overlaps = 0, left_out_regions = 0, left_out_lines = 0;
};

/// Listed in place of its run.
struct UnreadRun {
  std::string where, why;
};

/// Several runs, or any that could not be read, get a table of all regions above them, the worst
/// first; their details are packed (packed.h) until somebody opens them.
std::string html_report(std::span<const ReportRun> runs, std::span<const UnreadRun> unread = {});

}  // namespace foretrace
