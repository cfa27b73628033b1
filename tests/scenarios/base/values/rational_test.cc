#include "scenarios/base/values/rational.h"

#include <gtest/gtest.h>

#include <limits>

namespace foretrace {
namespace {

constexpr auto kMost = std::numeric_limits<std::int64_t>::max();

TEST(Rational, IsExactInTheFourOperations) {
  const Rational third{1, 3};
  EXPECT_EQ(third + third + third, 1);
  EXPECT_EQ(0 - third, Rational(-2, 6));
  EXPECT_EQ(third * 6 / 4, Rational(1, 2));
  EXPECT_EQ(Rational::from_decimal("125", -3), Rational(1, 8));
  EXPECT_EQ(Rational::from_decimal("5", 2), 500);
}

TEST(Rational, HasNoBound) {
  const Rational large = Rational{kMost} * kMost;
  EXPECT_EQ(large / kMost, kMost);
  EXPECT_EQ(large.rounded(), std::nullopt);
  EXPECT_EQ(Rational{2}.power(100).text(), "1267650600228229401496703205376");
  EXPECT_EQ(Rational{2}.power(100).bits(), 100u);
}

TEST(Rational, PassesFromSmallToLargeNumbersAndBack) {
  const Rational beyond = Rational{kMost} + 1;
  EXPECT_EQ(beyond.text(), "9223372036854775808");
  EXPECT_GT(beyond, kMost);
  EXPECT_EQ(beyond - 1, kMost);
  EXPECT_EQ((beyond - 1).rounded(), kMost);
  EXPECT_EQ((Rational{-kMost} - 1).rounded(), std::nullopt);
  EXPECT_EQ((Rational{-kMost} - 2).text(), "-9223372036854775809");
  EXPECT_EQ(Rational{std::int64_t{1} << 32} * (std::int64_t{1} << 31), beyond);
  EXPECT_EQ(beyond / 2, std::int64_t{1} << 62);
}

TEST(Rational, RoundsHalvesAwayFromZeroAndFloorsDown) {
  EXPECT_EQ(Rational(5, 2).rounded(), 3);
  EXPECT_EQ(Rational(-5, 2).rounded(), -3);
  EXPECT_EQ(Rational(12, 5).rounded(), 2);
  EXPECT_EQ(Rational(-1, 3).floor(), -1);
  EXPECT_EQ(Rational(7, 2).floor(), 3);
  EXPECT_EQ(Rational{-2}.floor(), -2);
  EXPECT_EQ(Rational{-kMost}.rounded(), -kMost);
}

TEST(Rational, ComparesAndSaysWhatItIs) {
  EXPECT_LT(Rational(1, 3), Rational(34, 100));
  EXPECT_GT(Rational{}, -1);
  EXPECT_EQ(Rational{}, 0);
  EXPECT_EQ(Rational(-1, 3).text(), "-1/3");
  EXPECT_DOUBLE_EQ(Rational(1, 8).to_double(), 0.125);
  EXPECT_TRUE(Rational(4, 2).is_whole());
  EXPECT_FALSE(Rational(1, 2).is_whole());
}

}  // namespace
}  // namespace foretrace
