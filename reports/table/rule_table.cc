#include "reports/table/rule_table.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reports/table/scenario_link.h"
#include "reports/table/text_table.h"

namespace foretrace {
namespace {

using Json = nlohmann::ordered_json;

std::string standing(const Program& program) {
  return program.source.empty() ? program.rule : program.rule + ": " + program.source;
}

TextTable table_of(std::span<const ScenarioResult> results,
                   const std::filesystem::path& linked_from) {
  TextTable table;
  for (const char* heading : {"rule", "scenario", "standing", "predicted", "measured"}) {
    table.column(heading, TextTable::Align::Left);
  }
  for (const ScenarioResult& result : results) {
    table.row({result.program.summary, scenario_link(result.program, linked_from),
               standing(result.program), result.predicted.word(), result.measured.word()});
  }
  return table;
}

/// "118 hold, 1 BROKEN, 1 undecided, 2 stale, 3 not there".
std::string count_words(std::span<const ScenarioResult> results, JudgedSide ScenarioResult::*side) {
  std::string text;
  for (const auto& [word, plural] : {std::pair{"holds", "hold"}, std::pair{"BROKEN", "BROKEN"},
                                     std::pair{"undecided", "undecided"},
                                     std::pair{"stale", "stale"}, std::pair{"-", "not there"}}) {
    const auto count =
        std::ranges::count_if(results, [side, counted = word](const ScenarioResult& result) {
          return (result.*side).word() == counted;
        });
    if (count == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count,
                        count == 1 && std::string_view{plural} == "hold" ? "holds" : plural);
  }
  return text.empty() ? "none" : text;
}

std::string counts(std::span<const ScenarioResult> results) {
  const auto documented = std::ranges::count_if(
      results, [](const ScenarioResult& result) { return result.program.rule == "documented"; });
  return fmt::format("{} rule{}: {} documented, {} observed. Predicted: {}. Measured: {}.\n",
                     results.size(), results.size() == 1 ? "" : "s", documented,
                     static_cast<std::ptrdiff_t>(results.size()) - documented,
                     count_words(results, &ScenarioResult::predicted),
                     count_words(results, &ScenarioResult::measured));
}

nlohmann::ordered_json side_json(const JudgedSide& side, std::size_t expectation) {
  if (side.state != JudgedSide::State::Judged) return nullptr;
  const Held held = side.held.at(expectation);
  return held == Held::Yes ? "holds" : held == Held::No ? "BROKEN" : "undecided";
}

}  // namespace

std::string rule_text(std::span<const ScenarioResult> results,
                      const std::filesystem::path& linked_from) {
  const TextTable table = table_of(results, linked_from);
  return (linked_from.empty() ? table.markdown() : table.document()) + "\n" + counts(results);
}

std::string rule_csv(std::span<const ScenarioResult> results) {
  return table_of(results, {}).csv();
}

std::string rule_json(std::span<const ScenarioResult> results) {
  Json rules = Json::array();
  for (const ScenarioResult& result : results) {
    const Program& program = result.program;
    Json rule{{"rule", program.summary},
              {"scenario", program.name},
              {"file", program.file},
              {"standing", program.rule},
              {"source", program.source},
              {"predicted", result.predicted.word()},
              {"measured", result.measured.word()},
              {"expectations", Json::array()}};
    for (std::size_t i = 0; i < program.expectations.size(); ++i) {
      rule["expectations"].push_back({{"expectation", describe(program.expectations[i])},
                                      {"line", program.expectations[i].line},
                                      {"predicted", side_json(result.predicted, i)},
                                      {"measured", side_json(result.measured, i)}});
    }
    rules.push_back(std::move(rule));
  }
  return Json{{"schema_version", 1}, {"kind", "rules"}, {"rules", std::move(rules)}}.dump(2) + "\n";
}

}  // namespace foretrace
