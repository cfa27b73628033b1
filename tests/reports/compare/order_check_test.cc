#include "reports/compare/order_check.h"

#include <gtest/gtest.h>

#include "scenarios/read/scenario.h"
#include "tests/reports/compare/ordered_timeline.h"

namespace foretrace::test {
namespace {

/// What it finds points into the program.
OrderCheck check(const OrderedTimes& times) {
  static const Program program = read_scenario(kOrderedScenario, "ordered.yaml")->program;
  return check_order(program, happens_before(program), ordered_timeline(program, times));
}

TEST(OrderCheck, CountsWhatIsInOrder) {
  const OrderCheck result = check({});
  EXPECT_TRUE(result.violations.empty());
  EXPECT_EQ(result.spans, 3U);
  EXPECT_EQ(result.held, 3U) << "a before both of b, and b's first before its second";
  EXPECT_EQ(result.neighbours, 1U);
}

TEST(OrderCheck, FindsTheKernelThatDidNotWaitForItsEvent) {
  const OrderCheck result =
      check({.first_end = 1500, .second_begin = 300, .second_end = 1600, .third_begin = 1600});
  ASSERT_EQ(result.violations.size(), 1U);
  EXPECT_EQ(describe(result.violations[0]),
            "process 0: line 11 (spin) begins 1.200 us before line 8 (spin) has ended");
}

TEST(OrderCheck, LeavesOpenWhatIsWithinTheClocksOfTwoGpus) {
  const OrderCheck result = check({.first_end = 22, .bound = 5});
  EXPECT_TRUE(result.violations.empty());
  EXPECT_EQ(result.undecided, 1U);
  EXPECT_EQ(result.held, 2U);
}

TEST(OrderCheck, FindsTwoKernelsOfOneStreamThatOverlap) {
  const OrderCheck result = check({.third_begin = 29, .bound = 5});
  ASSERT_EQ(result.violations.size(), 2U) << "as an order and as neighbours";
  EXPECT_TRUE(result.violations[1].is_overlap);
}

}  // namespace
}  // namespace foretrace::test
