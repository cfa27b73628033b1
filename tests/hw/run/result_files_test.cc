#include "hw/run/result_files.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "reports/timeline/environments.h"
#include "reports/timeline/timeline_json.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::hw {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

Timeline result_of(const std::string& hash, const std::vector<std::int64_t>& samples,
                   std::uint32_t start = 0) {
  Timeline timeline;
  timeline.origin.measured = true;
  timeline.origin.program_hash = hash;
  timeline.origin.scenario = "test";
  OpRow op;
  op.kind = "region";
  timeline.ops = {op};
  RegionSamples row;
  row.name = "r";
  row.samples_ns = samples;
  row.starts.assign(samples.size(), start);
  timeline.regions = {row};
  return timeline;
}

ProcessStart start(std::uint32_t number) {
  ProcessStart start;
  start.start = number;
  return start;
}

TEST(StartPlan, MeasuresEverythingWhereNothingIsThere) {
  const StartPlan plan = plan_start(std::nullopt, std::nullopt, "h", {});
  EXPECT_FALSE(plan.complete);
  EXPECT_EQ(plan.repetitions, 20);
  EXPECT_EQ(plan.traced, 1);
  EXPECT_EQ(plan.start, 0U);
}

TEST(StartPlan, LeavesACompleteResultAlone) {
  EXPECT_TRUE(plan_start(result_of("h", {1, 2}), std::nullopt, "h", {}).complete);
}

TEST(StartPlan, MeasuresAnewByForce) {
  StartRequest request;
  request.when_there = WhenThere::Force;
  const StartPlan plan = plan_start(result_of("h", {1, 2}), std::nullopt, "h", request);
  EXPECT_FALSE(plan.complete);
  EXPECT_FALSE(plan.keep_result);
  EXPECT_EQ(plan.repetitions, 20);
}

TEST(StartPlan, ResumesAtTheFirstMissingRepetitionAsAnotherStart) {
  const StartPlan plan = plan_start(std::nullopt, result_of("h", {1, 2, 3, 4, 5}), "h", {});
  EXPECT_EQ(plan.repetitions, 15);
  EXPECT_TRUE(plan.keep_partial);
  EXPECT_EQ(plan.start, 1U);
}

TEST(StartPlan, DoesNotResumeAnotherProgram) {
  const StartPlan plan = plan_start(std::nullopt, result_of("other", {1, 2, 3}), "h", {});
  EXPECT_EQ(plan.repetitions, 20);
  EXPECT_FALSE(plan.keep_partial);
}

TEST(StartPlan, AppendsAsTheNextStartAndKeepsTheSpans) {
  StartRequest request;
  request.when_there = WhenThere::Append;
  Timeline before = result_of("h", {1, 2}, 4);
  before.spans.push_back({});
  const StartPlan plan = plan_start(before, std::nullopt, "h", request);
  EXPECT_TRUE(plan.keep_result);
  EXPECT_EQ(plan.start, 5U);
  EXPECT_EQ(plan.repetitions, 20);
  EXPECT_EQ(plan.traced, 0);
}

TEST(StartPlan, RefusesToMixTwoPrograms) {
  StartRequest request;
  request.when_there = WhenThere::Append;
  EXPECT_THROW(plan_start(result_of("other", {1}), std::nullopt, "h", request), UsageError);
}

TEST(StartPlan, RunsAColdProgramOncePerProcess) {
  StartRequest request;
  request.cold = true;
  StartPlan plan = plan_start(std::nullopt, std::nullopt, "h", request);
  EXPECT_EQ(plan.repetitions, 1);
  EXPECT_EQ(plan.traced, 0) << "a traced pass after another would be warm";
  request.repetitions = 0;
  plan = plan_start(std::nullopt, std::nullopt, "h", request);
  EXPECT_EQ(plan.traced, 1);
}

class ResultFilesTest : public testing::Test {
 protected:
  ResultFilesTest()
      : directory_{std::filesystem::path{testing::TempDir()} /
                   testing::UnitTest::GetInstance()->current_test_info()->name()} {
    std::filesystem::remove_all(directory_);
  }
  ~ResultFilesTest() override { std::filesystem::remove_all(directory_); }

  ResultFiles files() const {
    Timeline empty = result_of("h", {});
    empty.regions.clear();
    return {{directory_}, empty};
  }
  static std::vector<RegionSamples> samples(const std::vector<std::int64_t>& ns,
                                            std::uint32_t start) {
    return result_of("h", ns, start).regions;
  }

  std::filesystem::path directory_;
};

TEST_F(ResultFilesTest, AnInterruptedRunLeavesAPartialFileThatTheNextOneContinues) {
  {
    ResultFiles first = files();
    first.open({});
    first.save_samples(samples({1, 2, 3}, 0));
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ / kMeasuredFile));
  ResultFiles second = files();
  const StartPlan plan = second.open({});
  EXPECT_EQ(plan.repetitions, 17);
  second.save_samples(samples({4}, plan.start));
  second.write(true);
  const Timeline result = read_timeline(directory_ / kMeasuredFile);
  ASSERT_THAT(result.regions, SizeIs(1));
  EXPECT_THAT(result.regions[0].samples_ns, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(result.regions[0].starts, ElementsAre(0U, 0U, 0U, 1U));
  EXPECT_FALSE(std::filesystem::exists(second.files().partial()));
}

TEST_F(ResultFilesTest, AnInterruptedAppendJoinsTheResultInTheEnd) {
  {
    ResultFiles first = files();
    first.open({});
    first.save_samples(samples({1}, 0));
    first.write(true);
  }
  StartRequest append;
  append.when_there = WhenThere::Append;
  {
    ResultFiles interrupted = files();
    EXPECT_EQ(interrupted.open(append).start, 1U);
    interrupted.save_samples(samples({2}, 1));
  }
  ResultFiles last = files();
  const StartPlan plan = last.open({});  // the same command again, or without --append
  EXPECT_EQ(plan.start, 2U);
  EXPECT_EQ(plan.repetitions, 19);
  last.save_samples(samples({3}, plan.start));
  last.write(true);
  const Timeline result = read_timeline(directory_ / kMeasuredFile);
  EXPECT_THAT(result.regions[0].samples_ns, ElementsAre(1, 2, 3));
  EXPECT_THAT(result.regions[0].starts, ElementsAre(0U, 1U, 2U));
}

TEST_F(ResultFilesTest, WrongDataTakesTheTimesWithIt) {
  ResultFiles result = files();
  result.open({});
  result.save_samples(samples({1, 2}, 0));
  result.write_outcome({Outcome::Kind::WrongData, {"x differs"}});
  const Timeline written = read_timeline(directory_ / kMeasuredFile);
  EXPECT_EQ(written.outcome.kind, Outcome::Kind::WrongData);
  EXPECT_TRUE(written.regions.empty());
}

TEST_F(ResultFilesTest, ATimeoutKeepsWhatWasMeasured) {
  ResultFiles result = files();
  result.open({});
  result.save_samples(samples({1, 2}, 0));
  result.write_outcome({Outcome::Kind::Timeout, {"process 1 waits"}});
  const Timeline written = read_timeline(directory_ / kMeasuredFile);
  EXPECT_EQ(written.outcome.kind, Outcome::Kind::Timeout);
  EXPECT_THAT(written.outcome.explanation, ElementsAre("process 1 waits"));
  ASSERT_THAT(written.regions, SizeIs(1));
  EXPECT_THAT(written.regions[0].samples_ns, ElementsAre(1, 2));
}

TEST_F(ResultFilesTest, KeepsTheEnvironmentOfEveryStart) {
  {
    ResultFiles first = files();
    first.open({});
    first.save_samples(samples({1}, 0));
    first.add_start(start(0),
                    {nlohmann::json{{"gpus", {{{"name", "X"}, {"temperature_celsius", 33U}}}}}});
    first.write(true);
  }
  StartRequest append;
  append.when_there = WhenThere::Append;
  ResultFiles second = files();
  second.open(append);
  second.add_start(start(1),
                   {nlohmann::json{{"gpus", {{{"name", "X"}, {"temperature_celsius", 44U}}}}}});
  second.write(true);
  const auto starts = read_timeline(second.files().result()).origin.starts;
  ASSERT_THAT(starts, SizeIs(2));
  EXPECT_EQ(starts[1].start, 1U);
  EXPECT_EQ(starts[0].environment, starts[1].environment) << "one environment, kept once";
  EXPECT_EQ(starts[1].gpus.at(0).temperature_celsius, 44U);
  EXPECT_TRUE(find_environment(second.files().result(), starts[1].environment));
}

TEST_F(ResultFilesTest, AppendsNothingToAResultOfTheEarlierForm) {
  {
    ResultFiles first = files();
    first.open({});
    first.save_samples(samples({1}, 0));
    first.write(true);
    std::ofstream{first.files().directory / "environment.json"} << "{}";
  }
  StartRequest append;
  append.when_there = WhenThere::Append;
  EXPECT_THROW(files().open(append), UsageError);
}

/// Both would read the same result, and the later one write it without the other's samples.
TEST_F(ResultFilesTest, AreOneStartsToWriteAtATime) {
  StartRequest append;
  append.when_there = WhenThere::Append;
  {
    ResultFiles first = files();
    first.open({});
    EXPECT_THROW(files().open(append), UsageError);
    first.save_samples(samples({1}, 0));
    first.write(true);
  }
  ResultFiles second = files();
  EXPECT_EQ(second.open(append).start, 1U) << "behind the first";
  EXPECT_TRUE(files().open({}).complete) << "who writes nothing does not wait";
}

TEST_F(ResultFilesTest, KnowsTheStartsOfWhatWasInterruptedBeforeItsTrace) {
  {
    ResultFiles first = files();
    first.open({});
    first.save_samples(samples({1, 2}, 0));
    first.add_start(start(0), {nlohmann::json{{"gpus", nlohmann::json::array()}}});
    first.write(false);
  }
  ResultFiles second = files();
  const StartPlan plan = second.open({});
  EXPECT_EQ(plan.start, 1U);
  second.add_start(start(1), {nlohmann::json{{"gpus", nlohmann::json::array()}}});
  second.write(true);
  EXPECT_THAT(read_timeline(second.files().result()).origin.starts, SizeIs(2));
}

TEST_F(ResultFilesTest, AnotherProcessWritesTheOutcomeWithWhatIsOnDisk) {
  ResultFiles opener = files();
  const StartPlan plan = opener.open({});
  ResultFiles other = files();
  opener.save_samples(samples({1, 2}, 0));
  other.join(plan);
  other.write_outcome({Outcome::Kind::Failed, {"process 1 failed"}});
  const Timeline written = read_timeline(directory_ / kMeasuredFile);
  EXPECT_EQ(written.outcome.kind, Outcome::Kind::Failed);
  ASSERT_THAT(written.regions, SizeIs(1));
  EXPECT_THAT(written.regions[0].samples_ns, ElementsAre(1, 2));
}

TEST_F(ResultFilesTest, AnotherProcessCountsNoSampleTwice) {
  {
    ResultFiles first = files();
    first.open({});
    first.save_samples(samples({1}, 0));
    first.write(true);
  }
  StartRequest append;
  append.when_there = WhenThere::Append;
  ResultFiles opener = files();
  const StartPlan plan = opener.open(append);
  ResultFiles other = files();
  opener.save_samples(samples({2}, plan.start));
  opener.write(false);  // the traced pass is still to come
  other.join(plan);
  other.write_outcome({Outcome::Kind::Failed, {"process 1 failed"}});
  const Timeline written = read_timeline(directory_ / kMeasuredFile);
  EXPECT_THAT(written.regions.at(0).samples_ns, ElementsAre(1, 2));
}

TEST_F(ResultFilesTest, AStartThatFailsTakesNothingFromEarlierOnes) {
  {
    ResultFiles first = files();
    first.open({});
    first.save_samples(samples({1, 2}, 0));
    first.add_start(start(0), {nlohmann::json{{"gpus", nlohmann::json::array()}}});
    first.write(true);
  }
  StartRequest append;
  append.when_there = WhenThere::Append;
  const auto fail = [&](const char* why) {
    ResultFiles later = files();
    const StartPlan plan = later.open(append);
    later.save_samples(samples({9}, plan.start));
    later.add_start(start(plan.start), {nlohmann::json{{"gpus", nlohmann::json::array()}}});
    EXPECT_TRUE(later.write_outcome({Outcome::Kind::Failed, {why}}));
  };
  fail("an illegal address");
  fail("the device is gone");
  const Timeline kept = read_timeline(directory_ / kMeasuredFile);
  EXPECT_EQ(kept.outcome.kind, Outcome::Kind::Completed);
  EXPECT_THAT(kept.regions.at(0).samples_ns, ElementsAre(1, 2));
  EXPECT_THAT(kept.origin.starts, SizeIs(1));
  EXPECT_EQ(kept.origin.versions.at("failed_starts"), "an illegal address; the device is gone");
  ResultFiles last = files();
  const StartPlan plan = last.open(append);
  EXPECT_EQ(plan.start, 1U);
  last.save_samples(samples({3}, plan.start));
  last.write(true);
  const Timeline joined = read_timeline(directory_ / kMeasuredFile);
  EXPECT_THAT(joined.regions.at(0).samples_ns, ElementsAre(1, 2, 3));
  EXPECT_EQ(joined.outcome.kind, Outcome::Kind::Completed);
}

TEST_F(ResultFilesTest, AForcedStartForgetsAnInterruptedOne) {
  {
    ResultFiles interrupted = files();
    interrupted.open({});
    interrupted.save_samples(samples({1, 2, 3}, 0));
  }
  StartRequest force;
  force.when_there = WhenThere::Force;
  ResultFiles forced = files();
  const StartPlan plan = forced.open(force);
  ResultFiles other = files();
  other.join(plan);
  other.write_outcome({Outcome::Kind::Failed, {"process 1 failed"}});
  EXPECT_THAT(read_timeline(directory_ / kMeasuredFile).regions, SizeIs(0));
}

}  // namespace
}  // namespace foretrace::hw
