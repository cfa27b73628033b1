#include "hw/check/content.h"

#include <gmock/gmock.h>

#include "hw/cuda/hash.h"

namespace foretrace::hw {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Value pattern(std::uint32_t seed, std::int64_t shift = 0, double factor = 1) {
  return {DataType::Float32, RedOp::Sum, {{seed, shift, factor}}};
}

TEST(Content, KeepsWhatAWriteLeavesOnBothSides) {
  Content content;
  content.set({0, 100, pattern(1)});
  content.set({40, 60, pattern(2)});
  EXPECT_THAT(content.pieces(), ElementsAre(Piece{0, 40, pattern(1)}, Piece{40, 60, pattern(2)},
                                            Piece{60, 100, pattern(1)}));
}

TEST(Content, HasNoValueWhereItIsNotOneKnownPiece) {
  Content content;
  content.set({0, 40, pattern(1)});
  EXPECT_EQ(content.value_of(0, 40), pattern(1));
  EXPECT_EQ(content.value_of(8, 16), pattern(1));
  EXPECT_EQ(content.value_of(0, 44), std::nullopt);
  content.forget(8, 12);
  EXPECT_EQ(content.value_of(0, 40), std::nullopt);
}

TEST(Content, CopyShiftsThePatternsIndex) {
  // Bytes [16, 32) of float32 are elements 4 ... 7; at bytes [0, 16) they are elements 0 ... 3, so
  // element i holds what element i + 4 of the pattern is.
  Content source;
  source.set({0, 64, pattern(3)});
  Content target;
  target.copy(source.within(16, 32), 16, 0, 16);
  EXPECT_THAT(target.pieces(), ElementsAre(Piece{0, 16, pattern(3, 4)}));
  EXPECT_EQ(element_of(target.pieces()[0].value, 1), pattern_value(3, 5));
}

TEST(Content, CopyThatCutsElementsIsUnknown) {
  Content source;
  source.set({0, 64, pattern(3)});
  Content target;
  target.copy(source.within(2, 10), 2, 0, 8);
  EXPECT_THAT(target.pieces(), IsEmpty());
}

TEST(CombinedPieces, AreCutWhereAnyContentChanges) {
  Content a;
  a.set({0, 80, pattern(1)});
  Content b;
  b.set({0, 40, pattern(2)});
  b.set({40, 60, pattern(3)});  // and unknown from 60 on
  const auto pieces = combined_pieces({&a, &b}, 0, 80, DataType::Float32, RedOp::Sum);
  EXPECT_THAT(pieces, ElementsAre(Piece{0, 40, *combined({pattern(1), pattern(2)}, RedOp::Sum)},
                                  Piece{40, 60, *combined({pattern(1), pattern(3)}, RedOp::Sum)}));
}

TEST(CombinedValue, AddsTheFactorsOfEqualPatterns) {
  const auto sum = combined({pattern(1), pattern(2), pattern(1, 0, 2)}, RedOp::Sum);
  ASSERT_TRUE(sum);
  EXPECT_THAT(sum->terms, ElementsAre(Term{1, 0, 3}, Term{2, 0, 1}));
}

TEST(CombinedValue, OfDifferentTypesIsUnknown) {
  Value half = pattern(2);
  half.type = DataType::Float16;
  EXPECT_EQ(combined({pattern(1), half}, RedOp::Sum), std::nullopt);
}

TEST(CombinedValue, IsUnknownOnceTheTypeCannotHoldItExactly) {
  // Float16 has 11 bits: 7 * 292 = 2044 fits, 7 * 293 = 2051 does not.
  Value value = pattern(1, 0, 292);
  value.type = DataType::Float16;
  EXPECT_TRUE(combined({value}, RedOp::Sum));
  value.terms[0].factor = 293;
  EXPECT_FALSE(combined({value}, RedOp::Sum));
  value.terms[0].factor = 292 * 4;  // a power of two more needs no more bits
  EXPECT_TRUE(combined({value}, RedOp::Sum));
}

TEST(CombinedValue, AveragesExactlyOverPowersOfTwoOnly) {
  const auto average = combined({pattern(1), pattern(2)}, RedOp::Avg);
  ASSERT_TRUE(average);
  EXPECT_THAT(average->terms, ElementsAre(Term{1, 0, 0.5}, Term{2, 0, 0.5}));
  EXPECT_FALSE(combined({pattern(1), pattern(2), pattern(3)}, RedOp::Avg));
}

TEST(CombinedValue, MinimumTakesPlainPatternsOnly) {
  const auto minimum = combined({pattern(1), pattern(2)}, RedOp::Min);
  ASSERT_TRUE(minimum);
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(element_of(*minimum, i), std::min(pattern_value(1, i), pattern_value(2, i)));
  }
  EXPECT_FALSE(combined({pattern(1, 0, 2), pattern(2)}, RedOp::Min));
}

TEST(Pattern, TakesEveryValueFromZeroToSeven) {
  std::array<int, 8> seen{};
  for (std::uint64_t i = 0; i < 8000; ++i) {
    const int value = pattern_value(1, i);
    ASSERT_GE(value, 0);
    ASSERT_LE(value, kPatternMax);
    ++seen[static_cast<std::size_t>(value)];
  }
  // 8000 draws: 1000 of each, give or take 5 standard deviations of 30.
  for (const int count : seen) EXPECT_NEAR(count, 1000, 150);
}

}  // namespace
}  // namespace foretrace::hw
