// Several measurements of one program become one.
#include "reports/compare/merge.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "reports/timeline/environments.h"
#include "reports/timeline/timeline_json.h"
#include "scenarios/base/text/errors.h"
#include "tests/reports/timeline_builder.h"

namespace foretrace::test {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

/// A region "step" of two processes, with these samples in both.
Timeline measured(std::vector<std::int64_t> samples, std::vector<std::uint32_t> starts,
                  const std::string& hash = "9b1c") {
  TimelineBuilder builder{true, hash};
  const auto op = builder.op("region", 3, "step");
  for (const std::uint32_t process : {0U, 1U}) {
    builder.region(op, "step", samples, process).starts = starts;
  }
  return builder.timeline;
}

TEST(MergeStarts, NumbersTheProcessStartsThrough) {
  const Timeline merged =
      merge_starts({measured({10, 11, 12}, {0, 0, 1}), measured({20}, {0}), measured({30}, {})});
  ASSERT_THAT(merged.regions, SizeIs(2));
  for (const RegionSamples& row : merged.regions) {
    EXPECT_THAT(row.samples_ns, ElementsAre(10, 11, 12, 20, 30));
    EXPECT_THAT(row.starts, ElementsAre(0, 0, 1, 2, 3));
  }
}

TEST(MergeStarts, EverythingElseIsTheLastPartsOwn) {
  Timeline last = measured({20}, {0});
  last.origin.versions["driver"] = "2";
  Timeline first = measured({10}, {0});
  first.origin.versions["driver"] = "1";
  EXPECT_EQ(merge_starts({first, last}).origin.versions.at("driver"), "2");
}

TEST(MergeStarts, RefusesDifferentProgramsPredictionsAndBrokenRuns) {
  EXPECT_THROW(merge_starts({measured({1}, {0}), measured({1}, {0}, "other")}), UsageError);
  Timeline predicted = measured({1}, {});
  predicted.origin.measured = false;
  EXPECT_THROW(merge_starts({predicted, measured({1}, {0})}), UsageError);
  Timeline hung = measured({1}, {0});
  hung.outcome.kind = Outcome::Kind::Timeout;
  EXPECT_THROW(merge_starts({hung, measured({1}, {0})}), UsageError);
}

class MergeRuns : public testing::Test {
 protected:
  void write(const std::string& place, const Timeline& timeline) const {
    std::filesystem::create_directories(directory_ / place);
    write_timeline(timeline, directory_ / (place + "/" + kMeasuredFile));
  }
  /// Of a start with this label on such a host, in today's form.
  Timeline started(Timeline timeline, const std::string& label, const std::string& cpu) const {
    const auto key =
        store_environment(recorded_environment({{"host", {{"cpu", cpu}}}}), directory_ / label);
    timeline.origin.starts = {{0, "2026-11-21", label, key, {{1980, 3201, 40, "none"}}}};
    return timeline;
  }
  TemporaryDirectory directory_;
};

TEST_F(MergeRuns, PutsEachProgramWhereTheLastRootHasIt) {
  write("monday/2_ranks/a", started(measured({10}, {0}), "monday", "X"));
  write("tuesday/2_ranks/a", started(measured({20}, {0}), "tuesday", "Y"));
  write("tuesday/b", measured({5}, {0}, "b"));
  const auto [written, left_out] =
      merge_runs({directory_ / "monday", directory_ / "tuesday"}, directory_ / "all");
  EXPECT_THAT(written, SizeIs(2));
  EXPECT_THAT(left_out, testing::IsEmpty());
  const Timeline a = read_timeline(directory_ / "all/2_ranks/a/measured.timeline.json");
  EXPECT_THAT(a.regions.at(0).samples_ns, ElementsAre(10, 20));
  EXPECT_THAT(read_timeline(directory_ / "all/b/measured.timeline.json").regions.at(0).samples_ns,
              ElementsAre(5));
  const auto& starts = a.origin.starts;
  ASSERT_THAT(starts, SizeIs(2));
  EXPECT_EQ(starts[1].start, 1U);
  EXPECT_EQ(starts[1].label, "tuesday");
  EXPECT_NE(starts[0].environment, starts[1].environment);
  for (const ProcessStart& start : starts) {
    EXPECT_EQ(
        find_environment(directory_ / "all/2_ranks/a/measured.timeline.json", start.environment),
        directory_ / ("all/environments/" + start.environment + ".json"));
  }
}

TEST_F(MergeRuns, RefusesAMeasurementThatIsThereTwice) {
  write("monday/a", started(measured({10}, {0}), "monday", "X"));
  EXPECT_THROW(merge_runs({directory_ / "monday", directory_ / "monday"}, directory_ / "all"),
               UsageError);
  std::filesystem::copy(directory_ / "monday", directory_ / "copy",
                        std::filesystem::copy_options::recursive);
  EXPECT_THROW(merge_runs({directory_ / "monday", directory_ / "copy"}, directory_ / "all"),
               UsageError);
  EXPECT_FALSE(std::filesystem::exists(directory_ / "all"));
}

TEST_F(MergeRuns, LeavesOutWhatCannotBeReadOrJoinedAndSaysIt) {
  write("monday/a", measured({10}, {0}));
  write("monday/b", measured({10}, {0}, "b"));
  std::ofstream{directory_ / "monday/b/environment.json"} << R"({"starts": [{"start": "x"}]})";
  Timeline cut = measured({10}, {0}, "c");
  cut.outcome.kind = Outcome::Kind::Failed;
  write("monday/c", cut);
  const auto [written, left_out] = merge_runs({directory_ / "monday"}, directory_ / "all");
  EXPECT_THAT(written, ElementsAre(directory_ / "all/a"));
  EXPECT_THAT(left_out, ElementsAre(testing::HasSubstr("monday/b/environment.json"),
                                    testing::HasSubstr("did not complete")));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "all/b"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "all/c"));
}

TEST_F(MergeRuns, JoinsTheStartsThatCompletedAndSaysWhichDidNot) {
  write("first/a", measured({10}, {0}));
  Timeline cut = measured({99}, {0});
  cut.outcome.kind = Outcome::Kind::Failed;
  write("second/a", cut);
  write("third/a", measured({20}, {0}));
  const auto [written, left_out] = merge_runs(
      {directory_ / "first", directory_ / "second", directory_ / "third"}, directory_ / "all");
  EXPECT_THAT(written, ElementsAre(directory_ / "all/a"));
  EXPECT_THAT(left_out,
              ElementsAre(testing::AllOf(testing::HasSubstr("second/a/measured.timeline.json"),
                                         testing::HasSubstr("did not complete; the other 2 are"))));
  const Timeline a = read_timeline(directory_ / "all/a/measured.timeline.json");
  EXPECT_THAT(a.regions.at(0).samples_ns, ElementsAre(10, 20));
  EXPECT_THAT(a.regions.at(0).starts, ElementsAre(0, 1));
}

TEST_F(MergeRuns, WritesNothingWhenNothingIsLeft) {
  write("monday/b", measured({10}, {0}, "b"));
  std::ofstream{directory_ / "monday/b/environment.json"} << R"({"starts": [{"start": "x"}]})";
  try {
    merge_runs({directory_ / "monday"}, directory_ / "all");
    FAIL() << "merged";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("monday/b/environment.json"));
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ / "all"));
}

TEST_F(MergeRuns, RefusesTwoProgramsInOnePlace) {
  write("monday/a", measured({10}, {0}));
  write("tuesday/a", measured({20}, {0}, "changed"));
  EXPECT_THROW(merge_runs({directory_ / "monday", directory_ / "tuesday"}, directory_ / "all"),
               UsageError);
}

}  // namespace
}  // namespace foretrace::test
