// A comparison as text (Markdown tables), JSON or CSV.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reports/compare/compare.h"

namespace foretrace {

/// Both tables, what they mean above them, the verdict below.
std::string compare_text(const Comparison& comparison);
std::string compare_json(const Comparison& comparison);
/// One row per region.
std::string compare_csv(const Comparison& comparison);

/// One line per region over all runs, then the accuracy over them. `alone` are the timelines that
/// found no partner.
std::string batch_text(std::span<const Comparison> comparisons,
                       const std::vector<std::string>& alone);
std::string batch_json(std::span<const Comparison> comparisons,
                       const std::vector<std::string>& alone);
std::string batch_csv(std::span<const Comparison> comparisons);

}  // namespace foretrace
