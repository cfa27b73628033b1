#include "reports/timeline/statistics.h"

#include <gtest/gtest.h>

#include <vector>

namespace foretrace {
namespace {

// Expected values: numpy.quantile([7, 1, 3, 10], p), its default method 'linear'. Sorted: 1 3 7 10;
// position p * 3: 0.25 -> 0.75 -> 1 + 0.75 * 2 = 2.5; 0.95 -> 2.85 -> 7 + 0.85 * 3 = 9.55.
TEST(Quantiles, AreThoseThatAreAskedOneByOne) {
  std::vector<double> values;
  for (int i = 0; i < 97; ++i) values.push_back(i * 41 % 97);
  const std::vector<double> unsorted = values;
  const std::vector<double> shares{0, 0.5, 0.5, 0.9, 0.95, 0.99, 1};
  const std::vector<double> all = quantiles(values, shares);
  ASSERT_EQ(all.size(), shares.size());
  for (std::size_t i = 0; i < shares.size(); ++i) {
    EXPECT_DOUBLE_EQ(all[i], quantile(unsorted, shares[i])) << shares[i];
    EXPECT_DOUBLE_EQ(all[i], 96 * shares[i]);
  }
}

TEST(Quantile, InterpolatesLinearlyBetweenSortedValuesAsNumpyDoes) {
  const std::vector<double> values{7, 1, 3, 10};
  EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 0.25), 2.5);
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 5);
  EXPECT_DOUBLE_EQ(quantile(values, 0.95), 9.55);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 10);
}

TEST(Quantile, OfOneValueIsThatValue) {
  EXPECT_DOUBLE_EQ(quantile(std::vector<double>{42}, 0.05), 42);
}

TEST(Quantile, LeavesTheCallersValuesInTheirOrder) {
  const std::vector<double> values{3, 1, 2};
  static_cast<void>(quantile(values, 0.5));
  EXPECT_EQ(values, (std::vector<double>{3, 1, 2}));
}

TEST(QuantileDeathTest, RefusesAnEmptyRange) {
  EXPECT_EXIT(quantile({}, 0.5), testing::ExitedWithCode(70), "at least one value");
}

TEST(Median, OfAnEvenCountIsTheMiddleOfTheTwoMiddleValues) {
  EXPECT_DOUBLE_EQ(median(std::vector<double>{4, 1, 2, 3}), 2.5);
}

// The median is 3; |value - 3| = 2 1 0 1 97; their median is 1. (Boost.Math 1.74 says 4.)
TEST(MedianAbsoluteDeviation, IsNotMovedByOneOutlier) {
  EXPECT_DOUBLE_EQ(median_absolute_deviation(std::vector<double>{1, 2, 3, 4, 100}), 1);
}

}  // namespace
}  // namespace foretrace
