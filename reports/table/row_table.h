// The feature table: which scenarios carry a tag such as A3 (a row of what the project is about),
// and how far their regions' predictions are from the measurement.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "reports/table/scenario_result.h"

namespace foretrace {

/// A letter from A to E, and a number in most.
bool is_row_tag(std::string_view tag);
bool has_row_tag(const Program& program);

/// One line per row and region.
std::string row_text(std::span<const ScenarioResult> results);
std::string row_csv(std::span<const ScenarioResult> results);
std::string row_json(std::span<const ScenarioResult> results);

/// One line per row: its scenarios as links from `linked_from`, how many rules, and the errors of
/// the regions of both, those that the model did not learn from apart.
std::string row_summary(std::span<const ScenarioResult> results,
                        const std::filesystem::path& linked_from);

}  // namespace foretrace
