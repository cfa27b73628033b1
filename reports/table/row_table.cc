#include "reports/table/row_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "reports/table/scenario_link.h"
#include "reports/table/text_table.h"
#include "reports/timeline/statistics.h"

namespace foretrace {
namespace {

using Json = nlohmann::ordered_json;

using RowsByTag = std::map<std::string, std::vector<const ScenarioResult*>>;  // by tag

RowsByTag rows_of(std::span<const ScenarioResult> results) {
  RowsByTag rows;
  for (const ScenarioResult& result : results) {
    for (const std::string& tag : result.program.tags) {
      if (is_row_tag(tag)) rows[tag].push_back(&result);
    }
  }
  return rows;
}

/// "12 hold, 1 BROKEN"
std::string verdicts(const std::vector<const ScenarioResult*>& scenarios,
                     JudgedSide ScenarioResult::*side) {
  std::map<std::string, std::size_t> counts;
  for (const ScenarioResult* result : scenarios) ++counts[(result->*side).word()];
  std::vector<std::string> parts;
  for (const auto& [word, words] :
       {std::pair{"holds", "hold"}, std::pair{"BROKEN", "BROKEN"},
        std::pair{"undecided", "undecided"}, std::pair{"stale", "stale"},
        std::pair{"states nothing", "state nothing"}, std::pair{"-", "not there"}}) {
    const auto found = counts.find(word);
    if (found == counts.end()) continue;
    parts.push_back(fmt::format("{} {}", found->second, words));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

const char* standing_of(const RegionRow& region) { return region.is_fit() ? "fit" : "prediction"; }

TextTable table_of(std::span<const ScenarioResult> results) {
  using enum TextTable::Align;
  TextTable table;
  for (const char* heading : {"row", "scenario", "in prediction", "in measurement", "region"}) {
    table.column(heading, Left);
  }
  for (const char* heading : {"predicted", "measured", "error"}) table.column(heading, Right);
  table.column("standing", Left);
  for (const auto& [tag, scenarios] : rows_of(results)) {
    for (const ScenarioResult* result : scenarios) {
      const std::string& name = result->program.name;
      const std::string predicted = result->predicted.word();
      const std::string measured = result->measured.word();
      if (result->regions.empty()) {
        table.row({tag, name, predicted, measured, "-", "-", "-", "-", "-"});
      }
      for (const RegionRow& region : result->regions) {
        table.row({tag, name, predicted, measured, region.name,
                   format_time(region.first->median_ns), format_time(region.second->median_ns),
                   format_or_dash(region.error, format_signed_percent), standing_of(region)});
      }
    }
  }
  return table;
}

/// The errors of one row's regions.
struct Errors {
  std::vector<double> absolute;
  std::vector<double> predictions;  ///< absolute, of the regions that nobody learned from
  double largest = 0;               ///< signed
  std::string where;
};

Errors errors_of(const std::vector<const ScenarioResult*>& scenarios) {
  Errors errors;
  for (const ScenarioResult* result : scenarios) {
    for (const RegionRow& region : result->regions) {
      if (!region.error) continue;
      errors.absolute.push_back(std::abs(*region.error));
      if (!region.is_fit()) errors.predictions.push_back(std::abs(*region.error));
      if (std::abs(*region.error) < std::abs(errors.largest)) continue;
      errors.largest = *region.error;
      errors.where = fmt::format("{} in {}", region.name, result->program.name);
    }
  }
  return errors;
}

/// Links to the scenarios, and how many rules of the other table there are besides.
std::string shown_by(const std::vector<const ScenarioResult*>& scenarios,
                     const std::filesystem::path& linked_from) {
  std::vector<std::string> parts;
  std::size_t rules = 0;
  for (const ScenarioResult* result : scenarios) {
    if (result->program.rule.empty()) {
      parts.push_back(scenario_link(result->program, linked_from));
    } else {
      ++rules;
    }
  }
  if (rules > 0) parts.push_back(rules == 1 ? "1 rule" : fmt::format("{} rules", rules));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

bool is_row_tag(std::string_view tag) {
  return !tag.empty() && tag.front() >= 'A' && tag.front() <= 'E' &&
         std::ranges::all_of(tag.substr(1), [](char c) { return c >= '0' && c <= '9'; });
}

bool has_row_tag(const Program& program) { return std::ranges::any_of(program.tags, is_row_tag); }

std::string row_text(std::span<const ScenarioResult> results) {
  return table_of(results).markdown();
}

std::string row_csv(std::span<const ScenarioResult> results) { return table_of(results).csv(); }

std::string row_json(std::span<const ScenarioResult> results) {
  Json rows = Json::array();
  for (const auto& [tag, scenarios] : rows_of(results)) {
    Json row{{"row", tag}, {"scenarios", Json::array()}};
    for (const ScenarioResult* result : scenarios) {
      Json scenario{{"name", result->program.name},
                    {"file", result->program.file},
                    {"predicted", result->predicted.word()},
                    {"measured", result->measured.word()},
                    {"regions", Json::array()}};
      for (const RegionRow& region : result->regions) {
        Json entry{{"name", region.name},
                   {"predicted_ns", region.first->median_ns},
                   {"measured_ns", region.second->median_ns},
                   {"error", nullptr},
                   {"standing", standing_of(region)}};
        if (region.error) entry["error"] = *region.error;
        scenario["regions"].push_back(std::move(entry));
      }
      row["scenarios"].push_back(std::move(scenario));
    }
    rows.push_back(std::move(row));
  }
  return Json{{"schema_version", 1}, {"kind", "rows"}, {"rows", std::move(rows)}}.dump(2) + "\n";
}

std::string row_summary(std::span<const ScenarioResult> results,
                        const std::filesystem::path& linked_from) {
  using enum TextTable::Align;
  TextTable table;
  table.column("row", Left);
  table.column("in prediction", Left);
  table.column("in measurement", Left);
  table.column("regions", Right);
  table.column("predictions", Right);
  table.column("median error", Right);
  table.column("of predictions", Right);
  table.column("largest error", Left);
  table.column("shown by", Left);
  for (const auto& [tag, scenarios] : rows_of(results)) {
    const Errors errors = errors_of(scenarios);
    const bool none = errors.absolute.empty();
    table.row(
        {tag, verdicts(scenarios, &ScenarioResult::predicted),
         verdicts(scenarios, &ScenarioResult::measured),
         none ? "-" : format_count(errors.absolute.size()),
         none ? "-" : format_count(errors.predictions.size()),
         none ? "-" : format_percent(median(errors.absolute)),
         errors.predictions.empty() ? "-" : format_percent(median(errors.predictions)),
         none ? "-" : fmt::format("{}, {}", format_signed_percent(errors.largest), errors.where),
         shown_by(scenarios, linked_from)});
  }
  return table.document();
}

}  // namespace foretrace
