// How the cells of comparison tables read, the same on the console and in the HTML report.
#pragma once

#include <optional>
#include <string>

#include "reports/compare/compare.h"

namespace foretrace {

std::string band_words(const RegionRow& row);                          ///< "90.0 us .. 110 us"
std::string spread_words(const std::optional<RegionFigure>& figure);   ///< p5 .. p95
std::string median_words(const std::optional<RegionFigure>& figure);   ///< "100.0 us"
std::string samples_words(const std::optional<RegionFigure>& figure);  ///< "20 in 3"
std::string part_words(std::uint32_t part);                            ///< "host call"
std::string unmatched_words(const OperationRow& row, const Comparison& comparison);
std::string begin_words(const OperationRow& row);       ///< "+4.000 us"
std::string error_words(const Comparison& comparison);  ///< "error = (predicted - ...) / ..."

}  // namespace foretrace
