#include "scenarios/base/values/quantity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace foretrace {
namespace {

Parsed<Quantity> names(std::string_view name) {
  if (name == "$n") return Quantity{kNumber, 4096, {}};
  if (name == "$size") return Quantity{kSize, 1 << 20, {}};
  if (name == "i") return Quantity{kNumber, {}, {{Expr::Op::Variable, 1}}};
  return tl::unexpected{QuantityError{"unknown name", "", 0}};
}

std::int64_t constant(std::string_view text, Unit unit) {
  const auto quantity = parse_quantity(text, names);
  if (!quantity) {
    ADD_FAILURE() << text << ": " << quantity.error().message;
    return -1;
  }
  const auto expr = to_expr(*quantity, unit);
  if (!expr) {
    ADD_FAILURE() << text << ": " << expr.error().message;
    return -1;
  }
  return expr->constant();
}

/// Where and why `text` is refused as a quantity of `unit`.
std::string refusal(std::string_view text, Unit unit) {
  const auto quantity = parse_quantity(text, names);
  if (!quantity) {
    return std::to_string(quantity.error().offset) + ": " + quantity.error().message + " | " +
           quantity.error().hint;
  }
  const auto expr = to_expr(*quantity, unit);
  return expr ? "accepted" : expr.error().message + " | " + expr.error().hint;
}

TEST(Quantity, SizesCountInPowersOfTwoOrTen) {
  EXPECT_EQ(constant("64MiB", kSize), 64 << 20);
  EXPECT_EQ(constant("1.5 KiB", kSize), 1536);
  EXPECT_EQ(constant("2GB", kSize), 2'000'000'000);
  EXPECT_EQ(constant("1TiB", kSize), 1LL << 40);
  EXPECT_EQ(constant("0B", kSize), 0);
  EXPECT_EQ(constant("007B", kSize), 7);
}

TEST(Quantity, ASmallBIsABit) {
  // 25 Gb/s, as NICs are sold, are 3.125 GB/s.
  EXPECT_EQ(constant("3.125GB / 25 Gb/s", kTime), 1'000'000'000'000);
  EXPECT_EQ(constant("8 Gb/s / 1 GB/s", kNumber), 1);
  EXPECT_EQ(constant("1Tb/s / 1Gb/s * (1Mb/s / 1Kb/s)", kNumber), 1'000'000);
  EXPECT_THAT(refusal("25Gb", kSize), testing::HasSubstr("'b' is a bit: sizes are in bytes"));
}

TEST(Quantity, CountsMayBeWrittenInThousandsAsSequencesAre) {
  EXPECT_EQ(constant("16k", kNumber), 16'384);
  EXPECT_EQ(constant("4M", kNumber), 4 << 20);
  EXPECT_EQ(constant("16k * 4B", kSize), 64 << 10);
  EXPECT_THAT(refusal("16k", kSize), testing::HasSubstr("a number without a unit"));
}

TEST(Quantity, TimesArePicoseconds) {
  EXPECT_EQ(constant("50us", kTime), 50'000'000);
  EXPECT_EQ(constant("0.1 ms", kTime), 100'000'000);
  EXPECT_EQ(constant("1.5e-6s", kTime), 1'500'000);
  EXPECT_EQ(constant("3ns + 1ps", kTime), 3001);
}

TEST(Quantity, RatesTurnSizesIntoTimes) {
  // 24.5e9 B at 24.5 GB/s take one second.
  EXPECT_EQ(constant("24.5GB / 24.5 GB/s", kTime), 1'000'000'000'000);
  // 1 B at 3 GB/s takes 333.3 ps, rounded.
  EXPECT_EQ(constant("1B / 3GB/s", kTime), 333);
  EXPECT_EQ(constant("2GB/s * 1us", kSize), 2000);
}

TEST(Quantity, MinMaxAndIfTakeUnitsAndConditions) {
  EXPECT_EQ(constant("min(3MiB, $size, 2MiB)", kSize), 1 << 20);
  EXPECT_EQ(constant("max(1us, 2us) * 3", kTime), 6'000'000);
  EXPECT_EQ(constant("if($n > 4000 and not $n == 5000, 8, 4)", kNumber), 8);
  EXPECT_EQ(constant("if($size < 1KiB or 1 >= 2, 8, 4)", kNumber), 4);
  EXPECT_EQ(constant("(3 != 3) + (2 <= 2)", kNumber), 1);
}

TEST(Quantity, ConditionsAreRefusedWhereTheyMeanNothing) {
  EXPECT_EQ(refusal("1 < 2 < 3", kNumber), "6: two comparisons in a row | write a < b and b < c");
  EXPECT_EQ(refusal("1KiB < 2", kNumber), "5: a size < a plain number has no meaning | ");
  EXPECT_EQ(refusal("min(1)", kNumber), "0: min takes two or more | ");
  EXPECT_EQ(refusal("if(1, 2)", kNumber), "0: if takes three: if(condition, then, otherwise) | ");
  EXPECT_EQ(refusal("if(1, 1MiB, 2)", kSize),
            "0: a size or a plain number: both must be of one kind | ");
  EXPECT_EQ(refusal("if(1KiB, 1, 2)", kNumber),
            "0: a condition is needed here, and this is a size | compare it: size > 0B");
  EXPECT_EQ(refusal("i = 3", kNumber), "2: '=' is no operator here | did you mean '=='?");
  EXPECT_EQ(
      refusal("min(i", kNumber),
      "5: ')' is missing | inside of {...} a comma ends the value: write 'min(a, b)' in quotes");
}

TEST(Quantity, ConditionsOfAnIndexAreKnownWhileItRuns) {
  const auto value = [](std::string_view text, std::int64_t i) {
    const auto quantity = parse_quantity(text, names);
    const auto expr = quantity ? to_expr(*quantity, quantity->unit)
                               : Parsed<Expr>{tl::unexpected{quantity.error()}};
    return expr ? expr->eval(std::array<std::int64_t, 2>{0, i}) : -1;
  };
  EXPECT_EQ(value("min(i, 3) * 1KiB", 5), 3072);
  EXPECT_EQ(value("if(i % 2 == 0, 8, 4)", 5), 4);
  EXPECT_EQ(value("if(i >= 5 and i < 6, 1ns, 2ns)", 5), 1000);
  EXPECT_EQ(value("not i", 5), 0);
}

TEST(Quantity, ArithmeticFollowsPrecedenceAndParentheses) {
  EXPECT_EQ(constant("1 + 2 * 3", kNumber), 7);
  EXPECT_EQ(constant("(1 + 2) * 3", kNumber), 9);
  EXPECT_EQ(constant("2 ** 3 ** 2", kNumber), 512);
  EXPECT_EQ(constant("-2 ** 2", kNumber), -4);
  EXPECT_EQ(constant("10 - 4 - 3", kNumber), 3);
  EXPECT_EQ(constant("7 % 4", kNumber), 3);
  EXPECT_EQ(constant("-1 % 4", kNumber), 3);
  EXPECT_EQ(constant("5%2", kNumber), 1);
  EXPECT_EQ(constant("4KiB * 2 ** 3", kSize), 32768);
}

TEST(Quantity, ParametersKeepTheirUnits) {
  EXPECT_EQ(constant("$n * $n * 4B", kSize), 64 << 20);
  EXPECT_EQ(constant("$size / 4B", kNumber), 262144);
  EXPECT_EQ(constant("$size % 1000B", kSize), 576);
}

TEST(Quantity, APercentSignAfterANumberIsAShare) {
  EXPECT_EQ(to_double(parse_quantity("80%", names).value()), 0.8);
  EXPECT_EQ(to_double(parse_quantity("100% - 80%", names).value()), 0.2);
}

TEST(Quantity, UnitsAreChecked) {
  EXPECT_EQ(refusal("1MiB + 1us", kSize), "5: a size + a time has no meaning | ");
  EXPECT_EQ(refusal("$size + 1", kSize), "6: a size + a plain number has no meaning | ");
  EXPECT_EQ(refusal("2 ** 1MiB", kSize), "2: a plain number ** a size has no meaning | ");
  EXPECT_EQ(refusal("50us", kSize), "a size is needed here, and this is a time | ");
}

TEST(Quantity, ANumberWithoutItsUnitIsRefusedWithAProposal) {
  EXPECT_EQ(refusal("64", kSize),
            "a size is needed here, and this is a number without a unit | "
            "did you mean 64B, 64KiB or 64MiB?");
  EXPECT_EQ(refusal("50", kTime),
            "a time is needed here, and this is a number without a unit | "
            "did you mean 50us, 50ms or 50ns?");
  EXPECT_EQ(refusal("0", kSize),
            "a size is needed here, and this is a number without a unit | "
            "did you mean 0B, 0KiB or 0MiB?");
}

TEST(Quantity, AnUnknownUnitGetsASuggestion) {
  EXPECT_EQ(refusal("64 Mib", kSize), "3: unknown unit 'Mib' | did you mean 'MiB'?");
}

TEST(Quantity, AnUnknownUnitGetsTheNearestOfAllWhateverIsWrittenLarge) {
  const auto hint = [](std::string_view text) {
    const std::string whole = refusal(text, kSize);
    return whole.substr(whole.find(" | ") + 3);
  };
  EXPECT_EQ(hint("300kB"), "did you mean 'KB'?");
  EXPECT_EQ(hint("300kb"), "did you mean 'KB'?");
  EXPECT_EQ(hint("64kiB"), "did you mean 'KiB'?");
  EXPECT_EQ(hint("2gb/s"), "did you mean 'GB/s' (bytes) or 'Gb/s' (bits)?");
  EXPECT_EQ(hint("25Gbps"), "did you mean 'Gb/s'?");
  EXPECT_EQ(hint("25 Gbit/s"), "did you mean 'Gb/s'?");
  EXPECT_EQ(hint("2G"), "did you mean 'GB'?");
  EXPECT_EQ(hint("5NS"), "did you mean 'ns'?");
  EXPECT_EQ(hint("5u"), "did you mean 'us'?");
  EXPECT_EQ(hint("5parsec"),
            "sizes end in B, KiB, MiB, GiB, TiB, KB, MB, GB or TB, times in ps, ns, us, ms or s, "
            "rates in a size's unit and /s or in Kb/s, Mb/s, Gb/s or Tb/s, counts in k (1,024) or M");
}

TEST(Quantity, TakesEveryUnitThatTheReferenceLists) {
  for (const char* size : {"B", "KiB", "MiB", "GiB", "TiB", "KB", "MB", "GB", "TB"}) {
    EXPECT_GT(constant(std::string{"1"} + size, kSize), 0) << size;
    EXPECT_GT(constant(std::string{"1KiB / 1"} + size + "/s", kTime), 0) << size;
  }
  for (const char* time : {"ps", "ns", "us", "ms", "s"}) {
    EXPECT_GT(constant(std::string{"1"} + time, kTime), 0) << time;
  }
}

TEST(Quantity, PartsOfBytesAndPartsOfNumbersAreRefused) {
  EXPECT_EQ(refusal("1B / 3", kSize), "a whole number of bytes is needed here, and this is 1/3 | ");
  EXPECT_EQ(refusal("7 / 2", kNumber), "a whole number is needed here, and this is 7/2 | ");
}

TEST(Quantity, ConstantsAreExactBeforeTheyAreRounded) {
  EXPECT_EQ(constant("1B / 3 * 3", kSize), 1);
  EXPECT_EQ(constant("0.1us * 10", kTime), 1'000'000);
}

TEST(Quantity, OverflowIsNoticedAtAnySize) {
  EXPECT_EQ(refusal("8388608TiB", kSize), "out of range: a size can be at most 2^63 - 1 bytes | ");
  EXPECT_EQ(refusal("16777216TiB", kSize), "out of range: a size can be at most 2^63 - 1 bytes | ");
  EXPECT_EQ(constant("9223372036854775807B", kSize), 9223372036854775807);
  EXPECT_EQ(refusal("1s * 10 ** 30", kTime), "out of range: a time can be at most 106 days | ");
  EXPECT_EQ(refusal("9 ** 999 ** 9", kNumber), "2: the power is out of range | ");
  EXPECT_EQ(refusal("99999999999999999999999999999999999999999", kNumber),
            "0: a number with too many digits | ");
}

TEST(Quantity, SyntaxErrorsPointAtTheirPlace) {
  EXPECT_EQ(refusal("1 + ", kNumber), "4: a number or a name is missing | ");
  EXPECT_EQ(refusal("(1 + 2", kNumber), "6: ')' is missing | ");
  EXPECT_EQ(refusal("1 2", kNumber), "2: unexpected '2' | ");
  EXPECT_EQ(refusal("nope + 1", kNumber), "0: unknown name | ");
  EXPECT_EQ(refusal("1 / 0", kNumber), "2: division by zero | ");
  EXPECT_EQ(refusal("i % 0", kNumber), "2: division by zero | ");
  EXPECT_EQ(refusal("2 ! 3", kNumber),
            "2: this is not a quantity such as 64MiB, 50us or $n * 4B | ");
  EXPECT_EQ(refusal(std::string(30, '(') + "1" + std::string(30, ')'), kNumber),
            "24: nested too deeply | ");
  EXPECT_EQ(refusal(std::string(2000, '1'), kNumber), "0: longer than 1000 characters | ");
}

TEST(Quantity, WhatDependsOnAnIndexBecomesAnExpression) {
  const auto quantity = parse_quantity("4KiB * 2 ** (i % 3)", names);
  ASSERT_TRUE(quantity);
  const auto expr = to_expr(*quantity, kSize);
  ASSERT_TRUE(expr);
  EXPECT_EQ(expr->to_string(), "((4096) * (((2) ** (((v1) % (3))))))");
  EXPECT_EQ(expr->eval(std::array{std::int64_t{0}, std::int64_t{5}}), 16384);
}

TEST(Reference, TakesIndicesInParentheses) {
  const auto reference = parse_reference("x(i % 2, 1)", names);
  ASSERT_TRUE(reference);
  EXPECT_EQ(reference->name, "x");
  ASSERT_EQ(reference->indices.size(), 2U);
  EXPECT_FALSE(reference->indices[0].is_constant());
  EXPECT_EQ(parse_reference("x", names)->indices.size(), 0U);
  EXPECT_FALSE(parse_reference("x(", names));
  EXPECT_FALSE(parse_reference("x()", names));
  EXPECT_FALSE(parse_reference("3x", names));
  EXPECT_FALSE(parse_reference("x(1) y", names));
}

}  // namespace
}  // namespace foretrace
