// The tables by rule and by row, from results made by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/table/row_table.h"
#include "reports/table/rule_table.h"

namespace foretrace {
namespace {

using testing::HasSubstr;
using testing::Not;

ScenarioResult rule(std::string name, std::vector<Held> predicted, JudgedSide measured) {
  ScenarioResult result;
  result.program.name = std::move(name);
  result.program.file = "scenarios/conformance/" + result.program.name + ".yaml";
  result.program.summary = "What " + result.program.name + " says.";
  result.program.rule = "observed";
  result.program.tags = {"conformance", "A2"};
  Expectation expectation;
  expectation.kind = "order";
  expectation.spans = {"x", "y"};
  result.program.expectations.assign(predicted.size(), expectation);
  result.predicted = {JudgedSide::State::Judged, std::move(predicted)};
  result.measured = std::move(measured);
  return result;
}

RegionRow region(std::string name, double predicted_ns, double measured_ns) {
  RegionRow row;
  row.name = std::move(name);
  row.first = RegionFigure{.median_ns = predicted_ns};
  row.second = RegionFigure{.median_ns = measured_ns};
  row.error = predicted_ns / measured_ns - 1;
  return row;
}

TEST(JudgedSide, IsBrokenByOneExpectation) {
  using enum Held;
  const auto word = [](std::vector<Held> held) {
    return JudgedSide{JudgedSide::State::Judged, std::move(held)}.word();
  };
  EXPECT_EQ(word({Yes, Undecided}), "holds");
  EXPECT_EQ(word({Yes, No, Undecided}), "BROKEN");
  EXPECT_EQ(word({Undecided}), "undecided");
  EXPECT_EQ((JudgedSide{JudgedSide::State::Stale, {}}.word()), "stale");
  EXPECT_EQ(JudgedSide{}.word(), "-");
}

TEST(RuleTable, ShowsBothVerdictsAndCountsThem) {
  using enum Held;
  const std::vector<ScenarioResult> results{
      rule("one", {Yes}, {JudgedSide::State::Judged, {Undecided}}),
      rule("two", {Yes, No}, {JudgedSide::State::Stale, {}}), rule("three", {Yes}, {})};
  const std::string text = rule_text(results);
  EXPECT_THAT(text,
              HasSubstr("| What one says.   | one      | observed | holds     | undecided |"));
  EXPECT_THAT(text,
              HasSubstr("| What two says.   | two      | observed | BROKEN    | stale     |"));
  EXPECT_THAT(text, HasSubstr("3 rules: 0 documented, 3 observed. Predicted: 2 hold, 1 BROKEN. "
                              "Measured: 1 undecided, 1 stale, 1 not there.\n"));
}

TEST(RuleTable, LinksFromWhereTheDocumentIs) {
  const std::vector<ScenarioResult> results{rule("one", {Held::Yes}, {})};
  EXPECT_THAT(rule_text(results, "scenarios"), HasSubstr("| [one](conformance/one.yaml) |"));
}

TEST(RuleTable, ListsEveryExpectationInJson) {
  const std::vector<ScenarioResult> results{rule("one", {Held::Yes, Held::No}, {})};
  const auto json = nlohmann::json::parse(rule_json(results));
  const auto& expectations = json.at("rules").at(0).at("expectations");
  EXPECT_EQ(expectations.at(1).at("predicted"), "BROKEN");
  EXPECT_TRUE(expectations.at(1).at("measured").is_null());
  EXPECT_EQ(expectations.at(0).at("expectation"), "x before y");
}

TEST(RowTable, KnowsARowsTag) {
  EXPECT_TRUE(is_row_tag("A1"));
  EXPECT_TRUE(is_row_tag("E"));
  for (const char* other : {"", "F1", "a1", "A1b", "conformance", "Event"}) {
    EXPECT_FALSE(is_row_tag(other)) << other;
  }
}

TEST(RowTable, HasALineForEveryRegionOfEveryRow) {
  auto one = rule("one", {}, {JudgedSide::State::Judged, {}});
  one.program.tags = {"A2", "C1", "conformance"};
  one.regions = {region("copy", 110, 100), region("step", 95, 100)};
  one.regions[1].learned_by = {"copy.h2d_bandwidth"};
  const auto two = rule("two", {}, {JudgedSide::State::Stale, {}});
  const std::vector<ScenarioResult> results{one, two};
  const std::string csv = row_csv(results);
  EXPECT_THAT(csv, HasSubstr("A2,one,copy,110 ns,100 ns,+10.0 %,prediction\n"));
  EXPECT_THAT(csv, HasSubstr("C1,one,step,95 ns,100 ns,-5.0 %,fit\n"));
  EXPECT_THAT(csv, HasSubstr("A2,two,-,-,stale,-,-\n"));
  EXPECT_THAT(csv, Not(HasSubstr("conformance,")));
  EXPECT_EQ(nlohmann::json::parse(row_json(results)).at("rows").size(), 2U);
}

TEST(RowTable, SumsUpARowWithItsLargestErrorAndItsRules) {
  auto one = rule("one", {}, {JudgedSide::State::Judged, {}});
  one.regions = {region("copy", 102, 100), region("step", 90, 100), region("rest", 101, 100)};
  one.regions[1].learned_by = {"copy.h2d_bandwidth"};
  auto shown = rule("shown", {}, {});
  shown.program.rule.clear();
  const std::vector<ScenarioResult> results{one, shown};
  EXPECT_THAT(row_summary(results, "scenarios"),
              HasSubstr("| A2 | 3 | 2 | 2.0 % | 1.5 % | -10.0 %, step in one | "
                        "[shown](conformance/shown.yaml), 1 rule |\n"));
}

}  // namespace
}  // namespace foretrace
