// The conformance table: every rule that a scenario states, where it is documented, and whether it
// holds in the prediction and in the measurement.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "reports/table/scenario_result.h"

namespace foretrace {

/// The table and the counts below it. With `linked_from`, scenarios are Markdown links from there.
std::string rule_text(std::span<const ScenarioResult> results,
                      const std::filesystem::path& linked_from = {});
std::string rule_csv(std::span<const ScenarioResult> results);
std::string rule_json(std::span<const ScenarioResult> results);

}  // namespace foretrace
