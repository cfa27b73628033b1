// The data check covers what the shipped scenarios move and reduce.
#include <gmock/gmock.h>

#include <filesystem>

#include "hw/check/plan.h"
#include "scenarios/read/scenario.h"
#include "scenarios/base/text/data_directory.h"

namespace foretrace::hw {
namespace {

std::filesystem::path scenarios() { return data_directory() / "scenarios"; }

TEST(ShippedCollectives, AreCheckedCompletely) {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator{scenarios() / "collectives"}) {
    const CheckPlan plan = plan_check(load_scenario(file.path()));
    EXPECT_TRUE(plan.possible) << file.path() << ": " << plan.why_not;
    EXPECT_GT(plan.results, 0U) << file.path();
    EXPECT_EQ(plan.expected, plan.results) << file.path();
    ++count;
  }
  EXPECT_GT(count, 5);
}

/// Planned within a second: loops are cut short. The most is 3,762.
constexpr std::size_t kMostCalls = 10'000;

/// Calls that the check makes, of all processes.
std::size_t calls_of(const CheckPlan& plan) {
  std::size_t calls = 0;
  for (const auto& steps : plan.steps) {
    for (const CheckStep& step : steps) calls += step.calls.size();
  }
  return calls;
}

TEST(ShippedScenarios, ArePlannedInFewCallsEach) {
  for (const auto& file : std::filesystem::recursive_directory_iterator{scenarios()}) {
    if (file.path().extension() != ".yaml") continue;
    const Program program = load_scenario(file.path());
    const CheckPlan plan = plan_check(program);
    EXPECT_LT(calls_of(plan), kMostCalls) << file.path();
    const bool hangs = file.path().parent_path().filename() == "hangs";
    // Some hangs are a stream's, or of an order that NCCL alone minds: the plan knows neither.
    EXPECT_TRUE(plan.possible || hangs) << file.path() << ": " << plan.why_not;
  }
}

}  // namespace
}  // namespace foretrace::hw
