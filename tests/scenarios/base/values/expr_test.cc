#include "scenarios/base/values/expr.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace foretrace {
namespace {

using Op = Expr::Op;
using Code = std::vector<Expr::Instruction>;
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

Expr make(Code code) { return Expr::from_postfix(std::move(code)).value(); }

/// v1 (op) constant
Expr with_constant(Op op, std::int64_t constant) {
  return make({{Op::Variable, 1}, {Op::Constant, constant}, {op}});
}

std::int64_t at(const Expr& expr, std::int64_t v1) {
  const std::array variables{std::int64_t{0}, v1};
  return expr.eval(variables);
}

TEST(Expr, WithoutVariablesIsFoldedToAConstant) {
  const Expr seven =
      make({{Op::Constant, 1}, {Op::Constant, 2}, {Op::Constant, 3}, {Op::Mul}, {Op::Add}});
  EXPECT_TRUE(seven.is_constant());
  EXPECT_EQ(seven.constant(), 7);
  EXPECT_EQ(seven.to_string(), "7");
}

TEST(Expr, RoundsDivisionAndRemainderDownAsPythonDoes) {
  EXPECT_EQ(at(with_constant(Op::Mod, 4), -1), 3);
  EXPECT_EQ(at(with_constant(Op::Div, 4), -1), -1);
  EXPECT_EQ(at(with_constant(Op::Mod, 4), 7), 3);
  EXPECT_EQ(at(with_constant(Op::Div, 4), 7), 1);
  EXPECT_EQ(at(with_constant(Op::Mod, -4), 7), -1);
  EXPECT_EQ(at(with_constant(Op::Div, -4), 7), -2);
}

TEST(Expr, FoldingRefusesWhatSixtyFourBitsCannotHold) {
  EXPECT_FALSE(Expr::from_postfix({{Op::Constant, kMax}, {Op::Constant, 1}, {Op::Add}}));
  EXPECT_FALSE(Expr::from_postfix({{Op::Constant, kMax}, {Op::Constant, 2}, {Op::Mul}}));
  EXPECT_FALSE(Expr::from_postfix({{Op::Constant, 2}, {Op::Constant, 63}, {Op::Pow}}));
  EXPECT_EQ(make({{Op::Constant, 2}, {Op::Constant, 62}, {Op::Pow}}).constant(), 1LL << 62);
  EXPECT_FALSE(Expr::from_postfix({{Op::Constant, 1}, {Op::Constant, 0}, {Op::Div}}));
  EXPECT_FALSE(Expr::from_postfix({{Op::Constant, 1}, {Op::Constant, 0}, {Op::Mod}}));
  EXPECT_FALSE(Expr::from_postfix(
      {{Op::Constant, std::numeric_limits<std::int64_t>::min()}, {Op::Constant, -1}, {Op::Div}}));
}

TEST(Expr, RefusesCodeDeeperThanItsStack) {
  Code code(65, {Op::Variable, 1});
  code.insert(code.end(), 64, {Op::Add});
  EXPECT_FALSE(Expr::from_postfix(code));
}

TEST(Expr, TryEvalIsEmptyWhereEvalWouldBeUndefined) {
  const std::array zero{std::int64_t{0}, std::int64_t{0}};
  const std::array large{std::int64_t{0}, kMax};
  EXPECT_FALSE(make({{Op::Constant, 5}, {Op::Variable, 1}, {Op::Div}}).try_eval(zero));
  EXPECT_FALSE(with_constant(Op::Mul, 2).try_eval(large));
  EXPECT_EQ(with_constant(Op::Sub, 2).try_eval(large), kMax - 2);
}

TEST(Expr, BoundsAreExactForOneVariableUsedOnce) {
  const std::array<Expr::Interval, 2> ranges{{{0, 0}, {0, 9}}};
  using I = Expr::Interval;
  EXPECT_EQ(with_constant(Op::Mod, 4).bounds(ranges), (I{0, 3}));
  EXPECT_EQ(with_constant(Op::Mod, 20).bounds(ranges), (I{0, 9}));
  EXPECT_EQ(with_constant(Op::Mul, -3).bounds(ranges), (I{-27, 0}));
  EXPECT_EQ(with_constant(Op::Sub, 1).bounds(ranges), (I{-1, 8}));
  EXPECT_EQ(with_constant(Op::Div, 2).bounds(ranges), (I{0, 4}));
  EXPECT_EQ(make({{Op::Constant, 2}, {Op::Variable, 1}, {Op::Pow}}).bounds(ranges), (I{1, 512}));
  EXPECT_EQ(make({{Op::Variable, 1}, {Op::Neg}}).bounds(ranges), (I{-9, 0}));
}

TEST(Expr, BoundsAreEmptyWhereAValueMayBeUndefined) {
  const std::array<Expr::Interval, 2> ranges{{{0, 0}, {-1, 70}}};
  EXPECT_FALSE(make({{Op::Constant, 2}, {Op::Variable, 1}, {Op::Pow}}).bounds(ranges));
  EXPECT_FALSE(make({{Op::Constant, 2}, {Op::Variable, 1}, {Op::Div}}).bounds(ranges));
  EXPECT_FALSE(make({{Op::Constant, 2}, {Op::Variable, 1}, {Op::Mod}}).bounds(ranges));
  EXPECT_FALSE(with_constant(Op::Mul, kMax).bounds(ranges));
}

/// Whatever the bounds say must hold for every value; small ranges can be tried out.
TEST(Expr, BoundsHoldEveryValueThatEvaluationGives) {
  for (const Op op : {Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Mod, Op::Pow}) {
    for (std::int64_t low = -5; low <= 5; ++low) {
      for (std::int64_t high = low; high <= 5; ++high) {
        for (std::int64_t b_low = -3; b_low <= 4; ++b_low) {
          for (std::int64_t b_high = b_low; b_high <= 4; ++b_high) {
            const Expr expr = make({{Op::Variable, 0}, {Op::Variable, 1}, {op}});
            const std::array<Expr::Interval, 2> ranges{{{low, high}, {b_low, b_high}}};
            const auto bounds = expr.bounds(ranges);
            for (std::int64_t a = low; a <= high; ++a) {
              for (std::int64_t b = b_low; b <= b_high; ++b) {
                const auto value = expr.try_eval(std::array{a, b});
                if (!bounds) continue;
                ASSERT_TRUE(value) << expr.to_string() << " for " << a << ", " << b;
                ASSERT_TRUE(bounds->low <= *value && *value <= bounds->high)
                    << expr.to_string() << " for " << a << ", " << b << " is " << *value;
              }
            }
          }
        }
      }
    }
  }
}

TEST(Expr, HasOneCanonicalText) {
  EXPECT_EQ(with_constant(Op::Mod, 2).to_string(), "((v1) % (2))");
}

}  // namespace
}  // namespace foretrace
