#include "hw/trace/clock_bound.h"

#include <gtest/gtest.h>

namespace foretrace::hw {
namespace {

TEST(ClockError, IsBoundedByTheTightestBracketOnEachSide) {
  // The kernel cannot have begun before its launch: 300 ns after it in the tightest bracket, so
  // the stamps are at most 300 ns late; and at most 500 ns early.
  const std::vector<ClockBracket> brackets{
      {0, 1000, 1900, 2900, 3400}, {0, 5000, 5300, 6300, 7500}, {1, 0, 50, 60, 70}};
  const ClockError error = clock_error(brackets, 0);
  EXPECT_EQ(error.late_ns, 300);
  EXPECT_EQ(error.early_ns, 500);
}

TEST(ClockError, IsAtLeastWhatABracketContradicts) {
  // The kernel begins 200 ns before it was launched: the stamps are that early.
  const ClockError error = clock_error({{0, 1000, 800, 1800, 5000}}, 0);
  EXPECT_GE(error.late_ns, 200);
}

TEST(ClockError, BetweenTwoClocksAddsBothDirections) {
  EXPECT_EQ(bound_ns(worst({{300, 500}, {200, 700}})), 300 + 700);
}

TEST(ClockBrackets, TakeTheirDeviceTimesFromTheirOwnKernels) {
  std::vector<ClockBracket> brackets{{0, 100, 0, 0, 400}, {0, 500, 0, 0, 900}};
  DeviceActivity kernel;
  kernel.cause = Execution{kBracketOp, 1};
  kernel.begin_ns = 600;
  kernel.end_ns = 700;
  DeviceActivity other = kernel;
  other.cause = Execution{3, 0};
  fill_brackets(brackets, {kernel, other});
  EXPECT_EQ(brackets[0].end_ns, 0);
  EXPECT_EQ(brackets[1].begin_ns, 600);
  EXPECT_EQ(brackets[1].end_ns, 700);
}

}  // namespace
}  // namespace foretrace::hw
