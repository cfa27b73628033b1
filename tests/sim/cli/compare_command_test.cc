#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/timeline/timeline_json.h"
#include "scenarios/base/text/errors.h"
#include "sim/cli/commands.h"
#include "tests/reports/timeline_builder.h"
#include "tests/sim/cli/command_line.h"

namespace foretrace {
namespace {

using test::run_command;
using test::TemporaryDirectory;
using test::TimelineBuilder;
using testing::HasSubstr;

Timeline one_region(bool measured, std::int64_t ns, const std::string& hash = "9b1c") {
  TimelineBuilder b{measured, hash};
  const auto op = b.op("region", 4, "step");
  b.region(op, "step", {ns});
  b.span(op, b.host(), 0, ns);
  return b.timeline;
}

class CompareCommand : public testing::Test {
 protected:
  void write(const std::string& run, const Timeline& timeline) {
    std::filesystem::create_directories(directory_ / run);
    write_timeline(timeline,
                   directory_ / run / (timeline.origin.measured ? kMeasuredFile : kPredictedFile));
  }
  test::CommandRun compare(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "compare");
    return run_command(add_compare_command, arguments);
  }
  std::string at(const std::string& name) const { return (directory_ / name).string(); }
  TemporaryDirectory directory_;
};

TEST_F(CompareCommand, SucceedsWithinTheTolerance) {
  write("run", one_region(false, 104'000));
  write("run", one_region(true, 100'000));
  const auto ran = compare({at("run")});
  EXPECT_EQ(ran.exit_code, kDone);
  EXPECT_THAT(ran.out, HasSubstr("+4.0 %"));
  EXPECT_THAT(ran.out, HasSubstr("error = (predicted - measured) / measured"));
  EXPECT_THAT(ran.out, HasSubstr("| prediction | ok"));
}

TEST_F(CompareCommand, SaysWhatATimeIsDividedBy) {
  for (const bool measured : {false, true}) {
    Timeline timeline = one_region(measured, 100'000);
    timeline.regions[0].per = 20;
    write("run", timeline);
  }
  EXPECT_THAT(compare({at("run")}).out, HasSubstr("| step / 20 "));
}

TEST_F(CompareCommand, FailsOutsideTheTolerance) {
  write("run", one_region(false, 104'000));
  write("run", one_region(true, 100'000));
  EXPECT_EQ(compare({at("run"), "--tolerance", "3%"}).exit_code, kBadAnswer);
  EXPECT_EQ(compare({at("run"), "--tolerance", "5 %"}).exit_code, kDone);
}

TEST_F(CompareCommand, RefusesAToleranceWithoutPercentSign) {
  write("run", one_region(false, 1));
  write("run", one_region(true, 1));
  const auto ran = compare({at("run"), "--tolerance", "10"});
  EXPECT_EQ(ran.exit_code, kWrongUse);
  EXPECT_THAT(ran.err, HasSubstr("did you mean 10%?"));
}

TEST_F(CompareCommand, RefusesDifferentPrograms) {
  write("run", one_region(false, 1, "aaaa"));
  write("run", one_region(true, 1, "bbbb"));
  const auto ran = compare({at("run")});
  EXPECT_EQ(ran.exit_code, kWrongUse);
  EXPECT_THAT(ran.err, HasSubstr("aaaa"));
  EXPECT_THAT(ran.err, HasSubstr("bbbb"));
  EXPECT_EQ(ran.out, "");
}

TEST_F(CompareCommand, SaysWhichTimelineIsMissing) {
  write("run", one_region(false, 1));
  const auto ran = compare({at("run")});
  EXPECT_EQ(ran.exit_code, kWrongUse);
  EXPECT_THAT(ran.err, HasSubstr("the measured timeline is missing"));
}

TEST_F(CompareCommand, TakesTheMeasurementFromASecondDirectory) {
  write("sim", one_region(false, 104'000));
  write("real", one_region(true, 100'000));
  EXPECT_THAT(compare({at("sim"), at("real")}).out, HasSubstr("+4.0 %"));
  EXPECT_THAT(compare({at("real"), at("sim")}).out, HasSubstr("+4.0 %"));
}

TEST_F(CompareCommand, ComparesTwoRunsOfOneOrigin) {
  write("a", one_region(true, 104'000));
  write("b", one_region(true, 100'000));
  const auto ran = compare({at("a"), at("b")});
  EXPECT_THAT(ran.out, HasSubstr("error = (A measured - B measured) / B measured"));
  EXPECT_THAT(ran.out, HasSubstr("+4.0 %"));
}

TEST_F(CompareCommand, WritesJsonWithUnitsInItsKeys) {
  write("run", one_region(false, 104'000));
  write("run", one_region(true, 100'000));
  const auto ran = compare({at("run"), "--format", "json", "-o", at("comparison.json")});
  EXPECT_EQ(ran.out, "");
  const auto json = nlohmann::json::parse(test::read_text(at("comparison.json")));
  EXPECT_EQ(json.at("schema_version"), 1);
  const auto& region = json.at("regions").at(0);
  EXPECT_DOUBLE_EQ(region.at("first").at("median_ns"), 104'000);
  EXPECT_NEAR(region.at("error").get<double>(), 0.04, 1e-12);
  EXPECT_DOUBLE_EQ(region.at("processes").at(0).at("second_ns"), 100'000);
  EXPECT_EQ(json.at("operations").at(0).at("matched"), 1);
}

TEST_F(CompareCommand, WritesOneCsvRowPerRegion) {
  write("run", one_region(false, 104'000));
  write("run", one_region(true, 100'000));
  EXPECT_THAT(compare({at("run"), "--format", "csv"}).out,
              HasSubstr("overlap,step,4,104000,104000,104000,100000,100000,100000,1,1,0.04"));
}

TEST_F(CompareCommand, UnmatchedDeviceSpansFailOnlyWhenStrict) {
  Timeline predicted = one_region(false, 100);
  predicted.lanes.push_back({LaneKind::Stream, 0, 0, 0, "compute"});
  predicted.spans.push_back({0, 1, 0, 0, 10, 1, 0});
  write("run", predicted);
  write("run", one_region(true, 100));
  const auto lax = compare({at("run")});
  EXPECT_EQ(lax.exit_code, kDone);
  EXPECT_THAT(lax.out, HasSubstr("1 device spans without a partner"));
  EXPECT_EQ(compare({at("run"), "--strict"}).exit_code, kBadAnswer);
}

TEST_F(CompareCommand, PairsManyRunsByTheirProgramAndSumsUp) {
  write("sim/a", one_region(false, 104'000, "aaaa"));
  write("sim/b", one_region(false, 96'000, "bbbb"));
  write("sim/c", one_region(false, 1, "cccc"));
  write("real/x", one_region(true, 100'000, "aaaa"));
  write("real/y", one_region(true, 100'000, "bbbb"));
  const auto ran = compare({"--all", at("sim"), at("real")});
  EXPECT_EQ(ran.exit_code, kDone);
  EXPECT_THAT(ran.out, HasSubstr("predictions: 2 regions, |error| median 4.0 %"));
  EXPECT_THAT(ran.out, HasSubstr("100.0 % within max(15 %, 1.5 us, half the spread)"));
  EXPECT_THAT(ran.out, HasSubstr("without a partner: " + at("sim/c/predicted.timeline.json")));
  const auto json =
      nlohmann::json::parse(compare({"--all", at("sim"), at("real"), "--format", "json"}).out);
  EXPECT_EQ(json.at("comparisons").size(), 2U);
  EXPECT_EQ(json.at("predictions").at("regions"), 2);
}

TEST_F(CompareCommand, HelpBeginsWithAnExample) {
  const auto ran = compare({"--help"});
  EXPECT_EQ(ran.exit_code, kDone);
  EXPECT_EQ(ran.out.find("Example:\n  foretrace compare run/"), 0U) << ran.out;
}

}  // namespace
}  // namespace foretrace
