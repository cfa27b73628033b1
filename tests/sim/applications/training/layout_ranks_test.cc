// The order of layouts, and the one that a prediction would have chosen.
#include "sim/applications/training/layout_ranks.h"

#include <gtest/gtest.h>

#include <cmath>

namespace foretrace::sim {
namespace {

std::vector<LayoutTrial> trials(const std::vector<std::pair<double, double>>& times) {
  std::vector<LayoutTrial> all;
  for (const auto& [measured, predicted] : times) {
    all.push_back({"7B", std::to_string(all.size()), measured, predicted});
  }
  return all;
}

TEST(LayoutRanks, AreOneWhereTheOrderIsRightWhateverTheTimesAre) {
  const auto ranks = layout_ranks(trials({{1, 10}, {2, 20}, {3, 21}, {9, 22}, {4, 21.5}}));
  ASSERT_EQ(ranks.size(), 1u);
  EXPECT_DOUBLE_EQ(ranks[0].correlation, 1);
  EXPECT_EQ(ranks[0].chosen, "0");
  EXPECT_EQ(ranks[0].excess, 0);
}

TEST(LayoutRanks, AreSpearmans) {
  // Ranks 0 to 4 predicted as 1, 0, 2, 4, 3: 1 - 6 * 4 / (5 * 24).
  const auto ranks = layout_ranks(trials({{1, 2}, {1.1, 1}, {3, 3}, {4, 5}, {5, 4}}));
  EXPECT_DOUBLE_EQ(ranks[0].correlation, 0.8);
  EXPECT_EQ(ranks[0].chosen, "1");
  EXPECT_EQ(ranks[0].best, "0");
  EXPECT_DOUBLE_EQ(ranks[0].excess, 1.1 / 1 - 1);
}

TEST(LayoutRanks, ShareARankWherePredictionsAreEqual) {
  // Measured 0, 1, 2; predicted 0, 1.5, 1.5: 1.5 / sqrt(2 * 1.5).
  const auto ranks = layout_ranks(trials({{1, 1}, {2, 7}, {3, 7}}), 3);
  EXPECT_DOUBLE_EQ(ranks[0].correlation, 1.5 / std::sqrt(3.0));
  EXPECT_EQ(layout_ranks(trials({{1, 7}, {2, 7}, {3, 7}}), 3)[0].correlation, 0) << "no order";
}

TEST(LayoutRanks, AreOfGroupsThatHaveEnough) {
  auto all = trials({{1, 1}, {2, 2}, {3, 3}, {4, 4}});
  all.push_back({"13B", "x", 5, 5});
  EXPECT_TRUE(layout_ranks(all).empty());
  EXPECT_EQ(layout_ranks(all, 4).size(), 1u);
  EXPECT_TRUE(layout_ranks({}).empty());
}

}  // namespace
}  // namespace foretrace::sim
