#include "scenarios/base/values/range_check.h"

#include <gtest/gtest.h>

namespace foretrace {
namespace {

using Op = Expr::Op;

Expr expr_of(std::vector<Expr::Instruction> code) {
  return Expr::from_postfix(std::move(code)).value();
}

VariableDomain loop(std::int64_t times) { return {{0}, {{"i", times}}}; }

/// (i * 7 + 3) % 5
const Expr kRepeating = expr_of({{Op::Variable, 1},
                                 {Op::Constant, 7},
                                 {Op::Mul},
                                 {Op::Constant, 3},
                                 {Op::Add},
                                 {Op::Constant, 5},
                                 {Op::Mod}});

/// i - (i / 2) * 2 is 0 or 1; as intervals it seems to reach from -99 to 99.
const Expr kParity = expr_of({{Op::Variable, 1},
                              {Op::Variable, 1},
                              {Op::Constant, 2},
                              {Op::Div},
                              {Op::Constant, 2},
                              {Op::Mul},
                              {Op::Sub}});

std::uint64_t count_assignments(const VariableDomain& domain, const Expr& expr) {
  std::uint64_t count = 0;
  for_each_assignment(domain, {&expr}, 1'000'000, [&count](Variables) {
    ++count;
    return true;
  });
  return count;
}

TEST(LeavesRange, NamesTheIteration) {
  const Expr square = expr_of({{Op::Variable, 1}, {Op::Variable, 1}, {Op::Mul}});
  EXPECT_EQ(leaves_range(square, 0, 50, loop(10)), "it is 64 for i = 8");
  EXPECT_EQ(leaves_range(square, 0, 81, loop(10)), std::nullopt);
  EXPECT_EQ(leaves_range(square, 0, 10, loop(0)), std::nullopt);  // never runs
}

TEST(LeavesRange, TriesOutWhatIntervalsCannotShow) {
  EXPECT_EQ(leaves_range(kParity, 0, 1, loop(100)), std::nullopt);
  EXPECT_EQ(leaves_range(kParity, 0, 0, loop(100)), "it is 1 for i = 1");
}

TEST(LeavesRange, FollowsMinAndConditions) {
  const Expr capped = expr_of({{Op::Variable, 1}, {Op::Constant, 4}, {Op::Min}});
  EXPECT_EQ(leaves_range(capped, 0, 4, loop(1'000'000'000)), std::nullopt);
  EXPECT_EQ(leaves_range(capped, 0, 3, loop(100)), "it is 4 for i = 4");
  const Expr chosen = expr_of({{Op::Variable, 1},
                               {Op::Constant, 2},
                               {Op::Mod},
                               {Op::Constant, 7},
                               {Op::Constant, 9},
                               {Op::Select}});
  EXPECT_EQ(leaves_range(chosen, 7, 9, loop(1'000'000'000)), std::nullopt);
  EXPECT_EQ(leaves_range(chosen, 7, 8, loop(1'000'000'000)), "it is 9 for i = 0");
  EXPECT_EQ(count_assignments(loop(1'000'000), chosen), 2U);
}

TEST(LeavesRange, SaysSoWhenThereAreTooManyToTryOut) {
  EXPECT_EQ(leaves_range(kParity, 0, 1, loop(1'000'000'000)),
            "it cannot be shown to stay there in all iterations (the first 1048576 do)");
}

TEST(LeavesRange, UsesTheProcessesOfTheThread) {
  const Expr process = expr_of({{Op::Variable, 0}});
  EXPECT_EQ(leaves_range(process, 0, 4, {{1, 3, 5}, {}}), "it is 5 for process = 5");
}

TEST(ForEachAssignment, FollowsARepeatingIndexThroughOnePeriod) {
  EXPECT_EQ(count_assignments(loop(1'000'000'000), kRepeating), 5U);
  EXPECT_EQ(count_assignments(loop(3), kRepeating), 3U);
  const Expr plain = expr_of({{Op::Variable, 1}});
  EXPECT_EQ(count_assignments(loop(1000), plain), 1000U);
  EXPECT_EQ(count_assignments(loop(1000), Expr{7}), 1U);
}

TEST(ForEachAssignment, ShowsEveryValueOfARepeatingIndex) {
  // ((i * i + 3) % 6) * 2 + (i % 4), against all iterations one by one.
  const Expr expr = expr_of({{Op::Variable, 1},
                             {Op::Variable, 1},
                             {Op::Mul},
                             {Op::Constant, 3},
                             {Op::Add},
                             {Op::Constant, 6},
                             {Op::Mod},
                             {Op::Constant, 2},
                             {Op::Mul},
                             {Op::Variable, 1},
                             {Op::Constant, 4},
                             {Op::Mod},
                             {Op::Add}});
  std::vector<bool> seen(20), all(20);
  for_each_assignment(loop(1'000'000), {&expr}, 1'000, [&](Variables v) {
    seen[static_cast<std::size_t>(expr.eval(v))] = true;
    return true;
  });
  for (std::int64_t i = 0; i < 1000; ++i) {
    all[static_cast<std::size_t>(expr.eval(std::vector<std::int64_t>{0, i}))] = true;
  }
  EXPECT_EQ(seen, all);
}

TEST(ForEachAssignment, DoesNotTakeHalvesForRepeating) {
  // (i / 2) % 2 repeats with 4, not with 2.
  const Expr halves =
      expr_of({{Op::Variable, 1}, {Op::Constant, 2}, {Op::Div}, {Op::Constant, 2}, {Op::Mod}});
  EXPECT_EQ(count_assignments(loop(100), halves), 100U);
}

}  // namespace
}  // namespace foretrace
