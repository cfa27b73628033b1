// What a calibration measures on which node.
#include "hw/calibrate/plan.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>

#include "hw/calibrate/record.h"
#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::hw {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::filesystem::path shipped() { return data_directory() / "scenarios"; }

std::map<std::string, std::string> why_not(const std::vector<CalibrationStep>& steps) {
  std::map<std::string, std::string> reasons;
  for (const CalibrationStep& step : steps) reasons[step.where()] = step.why_not;
  return reasons;
}

TEST(CalibrationPlan, SweepsTwoHalfAndAllRanks) {
  EXPECT_THAT(rank_counts(8), ElementsAre(2, 4, 8));
  EXPECT_THAT(rank_counts(4), ElementsAre(2, 4));
  EXPECT_THAT(rank_counts(3), ElementsAre(2, 3));
  EXPECT_THAT(rank_counts(1), IsEmpty());
}

TEST(CalibrationPlan, OverSeveralNodesSweepsWholeOnes) {
  EXPECT_THAT(rank_counts(8, 2), ElementsAre(2, 4, 8, 16));
  EXPECT_THAT(rank_counts(4, 6), ElementsAre(2, 4, 8, 16, 24));
  EXPECT_THAT(rank_counts(1, 2), ElementsAre(2));
  const auto reasons = why_not(plan_calibration(shipped(), {1, 1, false, 2}));
  EXPECT_EQ(reasons.at("2_ranks/nccl_all_reduce"), "") << "one GPU of each node";
  EXPECT_EQ(reasons.at("calibrate_nccl_one_way"), "needs 2 GPUs, this node has 1");
}

TEST(CalibrationPlan, SizesOfASweepDivideEvenlyAmongTheRanks) {
  EXPECT_EQ(sweep_parameters(8).at("small"), "64B");
  EXPECT_EQ(sweep_parameters(8).at("large"), "8192KiB");
  EXPECT_EQ(sweep_parameters(3).at("small"), "48B");
  EXPECT_EQ(sweep_parameters(3).at("large"), "6144KiB");
  EXPECT_EQ(sweep_parameters(7).at("small"), "56B");
}

TEST(CalibrationPlan, OnEightGpusEverythingRunsWithinFiveMinutes) {
  const auto steps = plan_calibration(shipped(), {8, 8, true});
  double seconds = 0;
  std::map<std::string, int> in_folder;
  for (const CalibrationStep& step : steps) {
    EXPECT_EQ(step.why_not, "") << step.where();
    seconds += step.seconds;
    ++in_folder[step.folder];
  }
  EXPECT_LT(seconds, 300);
  EXPECT_EQ(in_folder["2_ranks"], 9);
  EXPECT_EQ(in_folder["4_ranks"], 9);
  EXPECT_EQ(in_folder["8_ranks"], 18) << "one thread for all GPUs, too";
  EXPECT_GE(in_folder[""], 11);
}

TEST(CalibrationPlan, SaysWhatOneGpuCannotRun) {
  const auto reasons = why_not(plan_calibration(shipped(), {1, 1, false}));
  EXPECT_EQ(reasons.at("calibrate_copies"), "");
  EXPECT_EQ(reasons.at("calibrate_two_gpus"), "needs 2 GPUs, this node has 1");
  EXPECT_EQ(reasons.at("2_ranks/nccl_all_reduce"), "needs 2 GPUs, this node has 1");
}

TEST(CalibrationPlan, SaysHowManyProcessesAreNeeded) {
  const auto reasons = why_not(plan_calibration(shipped(), {1, 8, true}));
  EXPECT_EQ(reasons.at("calibrate_two_gpus"), "") << "one process, two GPUs";
  EXPECT_EQ(reasons.at("calibrate_nccl_one_way"), "needs 2 processes: mpirun -n 8");
  EXPECT_EQ(reasons.at("2_ranks/nccl_one_thread_all_reduce"), "");
}

TEST(CalibrationPlan, LeavesOutPeerCopiesWhereThereIsNoPeerAccess) {
  const auto reasons = why_not(plan_calibration(shipped(), {2, 2, false}));
  EXPECT_THAT(reasons.at("calibrate_two_gpus"), HasSubstr("no peer access"));
  EXPECT_EQ(reasons.at("2_ranks/nccl_all_reduce"), "") << "NCCL goes through the host then";
}

TEST(CalibrationPlan, MeasuresFewGpusBeforeMany) {
  int before = 0;
  for (const CalibrationStep& step : plan_calibration(shipped(), {8, 8, true})) {
    if (step.sweep) continue;
    EXPECT_GE(step.processes, before) << step.where();
    before = step.processes;
  }
}

TEST(CalibrationPlan, RefusesADirectoryWithoutScenarios) {
  EXPECT_THROW(plan_calibration(testing::TempDir(), {}), UsageError);
}

TEST(CalibrationPlan, ReachesTheOtherProcessesUnchanged) {
  const auto steps = plan_calibration(shipped(), {1, 2, true});
  const auto read = steps_from(to_text(steps));
  ASSERT_EQ(read.size(), steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(read[i].where(), steps[i].where());
    EXPECT_EQ(read[i].parameters, steps[i].parameters);
    EXPECT_EQ(read[i].why_not, steps[i].why_not);
    EXPECT_EQ(read[i].seconds, steps[i].seconds);
  }
}

TEST(CalibrationRecord, IsReadBackByTheNextStart) {
  const auto runs = std::filesystem::path{testing::TempDir()} / "calibration_record";
  std::filesystem::remove_all(runs);
  {
    CalibrationRecord record{runs};
    record.set("2_ranks/x", {"failed", "wrong data", 1.5});
    EXPECT_THROW(CalibrationRecord{runs}, UsageError) << "one start at a time";
  }
  std::optional<CalibrationRecord> read{runs};
  const CalibrationRecord& again = *read;
  EXPECT_EQ(again.of("2_ranks/x").state, "failed");
  EXPECT_EQ(again.of("2_ranks/x").reason, "wrong data");
  EXPECT_EQ(again.of("2_ranks/x").seconds, 1.5);
  EXPECT_EQ(again.of("y").state, "");
  read.reset();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator{runs}, {}), 1) << "the record alone";
  for (const char* wrong :
       {"[]", "{}", R"({"steps":1})", R"({"steps":{"a":5}})", R"({"steps":{"a":{"state":1}}})",
        R"({"steps":{"a":{"seconds":"1"}}})"}) {
    std::ofstream{runs / "calibration.json"} << wrong;
    EXPECT_THROW(CalibrationRecord{runs}, UsageError) << wrong;
  }
  std::filesystem::remove_all(runs);
}

}  // namespace
}  // namespace foretrace::hw
