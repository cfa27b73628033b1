// How the cells of comparison tables read, the same on the console and in the HTML report.
#pragma once

#include <optional>
#include <string>

#include "reports/compare/compare.h"

namespace foretrace {

/// "step [3] / 20": times are divided by 20.
std::string title_words(const RegionRow& row);
std::string band_words(const RegionRow& row);                          ///< "90.0 us .. 110 us"
std::string spread_words(const std::optional<RegionFigure>& figure);   ///< p5 .. p95
std::string median_words(const std::optional<RegionFigure>& figure);   ///< "100.0 us"
std::string samples_words(const std::optional<RegionFigure>& figure);  ///< "20 in 3"
/// "0", "0-3, 5": the processes that have the region.
std::string process_words(const RegionRow& row);
/// What the device achieved, on each side that is there: "598 / 612 TFLOP/s", "55.3 GB/s"; "-" for
/// other work.
std::string achieved_words(const OperationRow& row, const Comparison& comparison);
/// The same of a region that is of one product, copy or collective.
std::string achieved_words(const RegionRow& row, const Comparison& comparison);
std::string part_words(const OperationRow& row, const Comparison& comparison);  ///< "host call"
std::string unmatched_words(const OperationRow& row, const Comparison& comparison);
/// What a reader must know of the row: spans without a partner, calls under tracing.
std::string note_words(const OperationRow& row, const Comparison& comparison);
std::string overlap_words(const OverlapRow& row, const Comparison& comparison);  ///< "a beside b"
std::string memory_words(const std::optional<std::int64_t>& bytes);              ///< "4.21 GB"
std::string begin_words(const OperationRow& row);                                ///< "+4.000 us"
/// Which regions ran what the prediction is not of, and what would; empty when none did.
std::string stand_in_words(const Comparison& comparison);
std::string error_words(const Comparison& comparison);  ///< "error = (predicted - ...) / ..."

/// "the GPU is busy 43.1 ms of the step, measured 43.9 ms (-1.8 %)"; of a joined step.
std::string busy_words(const Comparison& comparison);
/// Of a measured step: why the prediction may be one of something else. A line each.
std::vector<std::string> doubts_of(const Comparison& comparison);
/// The `most` that take longest, then "other operations", then the sum of all.
std::vector<FamilyRow> shown_families(const Comparison& comparison, std::size_t most);
/// A line for each side that has what the other has not: the operations, with how often.
std::vector<std::string> alone_words(const Comparison& comparison);

}  // namespace foretrace
