// What a framework ran in a program's stead, compared by its regions and its kernels' names.
#include <gtest/gtest.h>

#include "reports/compare/compare.h"
#include "scenarios/base/text/errors.h"
#include "tests/reports/timeline_builder.h"

namespace foretrace {
namespace {

using test::TimelineBuilder;

constexpr double kTolerance = 0.10;

/// A step of the program's one gemm, and what a framework ran in its stead: two kernels by name.
TimelineBuilder captured_run(const std::vector<std::string>& kernels) {
  TimelineBuilder b{true};
  b.region(b.op("region", 4, "step"), "step", {100'000});
  b.op("gemm", 5);
  const auto stream = b.stream("default(0)");
  std::int64_t at = 0;
  for (const std::string& kernel : kernels) {
    const auto op = b.op("library_kernel", 0, kernel);
    b.timeline.ops[op].captured = true;
    b.span(op, stream, at, at + 10'000 * (op - 1), 1);
    at += 50'000;
  }
  return b;
}

TEST(CompareCaptured, APredictionJoinsByItsRegionsOnly) {
  TimelineBuilder predicted{false};
  predicted.region(predicted.op("region", 4, "step"), "step", {105'000});
  const auto gemm = predicted.op("gemm", 5);
  predicted.span(gemm, predicted.stream("default(0)"), 0, 60'000, 1);
  predicted.span(gemm, predicted.stream("gathering"), 0, 60'000, 1);  // at once, there alone
  predicted.timeline.memory = {{0, 0, 0, 900, 2000}, {0, 0, 5, 1100, 2000}, {0, 0, 9, 400, 2000}};
  auto measured = captured_run({"nvjet", "adam"});
  measured.timeline.memory_peaks = {{0, 0, 1000, 3000}};
  const auto c = compare(predicted.timeline, measured.timeline, kTolerance);
  EXPECT_TRUE(c.within()) << "kernels without a partner are no error";
  EXPECT_TRUE(c.is_captured());
  EXPECT_DOUBLE_EQ(c.regions.at(0).error.value(), 0.05);
  EXPECT_TRUE(c.overlaps.empty());
  ASSERT_EQ(c.operations.size(), 3U);
  EXPECT_EQ(c.operations[1].label, "nvjet");
  EXPECT_EQ(c.operations[1].only_second, 1U);
  EXPECT_DOUBLE_EQ(c.operations[2].second_ns.value(), 20'000);
  ASSERT_EQ(c.memory.size(), 1U);
  EXPECT_DOUBLE_EQ(c.memory[0].error.value(), 0.1) << "1100 B at its peak, 1000 B measured";
}

TEST(CompareCaptured, KernelsOfTwoRunsJoinByName) {
  const auto first = captured_run({"nvjet", "adam"});
  const auto second = captured_run({"adam", "norm", "nvjet"});
  const auto c = compare(first.timeline, second.timeline, kTolerance);
  ASSERT_EQ(c.operations.size(), 3U);
  EXPECT_EQ(c.operations[0].label, "nvjet");
  EXPECT_DOUBLE_EQ(c.operations[0].first_ns.value(), 10'000);
  EXPECT_DOUBLE_EQ(c.operations[0].second_ns.value(), 30'000);
  EXPECT_EQ(c.operations[1].label, "adam");
  EXPECT_DOUBLE_EQ(c.operations[1].second_ns.value(), 10'000);
  EXPECT_EQ(c.operations[2].label, "norm");
  EXPECT_EQ(c.operations[2].only_second, 1U);
}

TEST(CompareCaptured, RefusesAnotherProgramWhateverWasCaptured) {
  TimelineBuilder predicted{false};
  predicted.op("region", 4, "step");
  const auto measured = captured_run({"nvjet"});
  EXPECT_THROW(compare(predicted.timeline, measured.timeline, kTolerance), UsageError);
}

}  // namespace
}  // namespace foretrace
