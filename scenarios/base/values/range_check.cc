#include "scenarios/base/values/range_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace foretrace {
namespace {

constexpr std::uint64_t kMostEvaluations = std::uint64_t{1} << 20;  // about 10 ms

std::vector<Expr::Interval> intervals(const VariableDomain& domain) {
  std::vector<Expr::Interval> ranges{{domain.processes.front(), domain.processes.back()}};
  for (const auto& loop : domain.loops) ranges.push_back({0, loop.times - 1});
  return ranges;
}

/// How a subexpression depends on one variable: as a polynomial whose coefficients repeat with a
/// period (which may be 1: constants).
struct Dependence {
  bool is_polynomial = false;  ///< beyond its repeating part
  std::int64_t period = 1;
};

/// The number of steps after which `expr` takes the same values again; empty when not known.
std::optional<std::int64_t> period_of(const Expr& expr, std::size_t slot) {
  constexpr std::int64_t kLongest = 1 << 20;
  if (expr.is_constant()) return 1;
  std::vector<Dependence> stack;
  std::vector<std::optional<std::int64_t>> constants;  // of the same subexpressions
  for (const auto& [op, value] : expr.code()) {
    if (op == Expr::Op::Neg) {
      constants.back().reset();
    } else if (op == Expr::Op::Constant || op == Expr::Op::Variable) {
      const bool is_constant = op == Expr::Op::Constant;
      stack.push_back({!is_constant && static_cast<std::size_t>(value) == slot, 1});
      constants.push_back(is_constant ? std::optional{value} : std::nullopt);
    } else if (op == Expr::Op::Select) {
      for (int further = 0; further < 2; ++further) {
        const Dependence last = stack.back();
        stack.pop_back();
        constants.pop_back();
        stack.back().is_polynomial = stack.back().is_polynomial || last.is_polynomial;
        stack.back().period = std::lcm(stack.back().period, last.period);
      }
      constants.back().reset();
      if (stack.back().is_polynomial || stack.back().period > kLongest) return std::nullopt;
    } else {
      const Dependence right = stack.back();
      const auto divisor = constants.back();
      stack.pop_back();
      constants.pop_back();
      Dependence& left = stack.back();
      constants.back().reset();
      left.period = std::lcm(left.period, right.period);
      if (op == Expr::Op::Mod && divisor && *divisor > 0 && *divisor <= kLongest) {
        if (left.is_polynomial) left.period = std::lcm(left.period, *divisor);
        left.is_polynomial = false;  // a polynomial modulo m repeats with m
      } else if (op == Expr::Op::Add || op == Expr::Op::Sub || op == Expr::Op::Mul) {
        left.is_polynomial = left.is_polynomial || right.is_polynomial;
      } else if (left.is_polynomial || right.is_polynomial) {
        return std::nullopt;  // i / 2, 2 ** i, min(i, 4)
      }
      if (left.period > kLongest) return std::nullopt;  // so the product above stays in 64 bits
    }
  }
  if (stack.back().is_polynomial) return std::nullopt;
  return stack.back().period;
}

/// So many values of the variable show everything that `exprs` can become.
std::size_t values_to_visit(const VariableDomain& domain, const std::vector<const Expr*>& exprs,
                            std::size_t slot) {
  if (slot == 0) return domain.processes.size();
  const std::int64_t times = domain.loops[slot - 1].times;
  std::int64_t period = 1;
  for (const Expr* expr : exprs) {
    const auto own = period_of(*expr, slot);
    // Where 64 bits could overflow, the values do not repeat.
    if (!own || !expr->bounds(intervals(domain))) return static_cast<std::size_t>(times);
    period = std::lcm(period, *own);
    if (period >= times) return static_cast<std::size_t>(times);
  }
  return static_cast<std::size_t>(period);
}

}  // namespace

bool VariableDomain::runs_never() const {
  return processes.empty() ||
         std::ranges::any_of(loops, [](const Loop& loop) { return loop.times == 0; });
}

std::vector<std::size_t> used_slots(const std::vector<const Expr*>& exprs) {
  std::vector<std::size_t> slots;
  for (const Expr* expr : exprs) {
    for (const auto& [op, value] : expr->code()) {
      if (op == Expr::Op::Variable) slots.push_back(static_cast<std::size_t>(value));
    }
  }
  std::ranges::sort(slots);
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  return slots;
}

bool for_each_assignment(const VariableDomain& domain, const std::vector<const Expr*>& exprs,
                         std::uint64_t limit, const std::function<bool(Variables)>& visit) {
  if (domain.runs_never()) return true;
  const auto slots = used_slots(exprs);
  std::vector<std::size_t> counts;
  counts.reserve(slots.size());
  for (const std::size_t slot : slots) counts.push_back(values_to_visit(domain, exprs, slot));
  std::vector<std::int64_t> variables(domain.loops.size() + 1, 0);
  std::vector<std::size_t> position(slots.size(), 0);
  variables[0] = domain.processes.front();
  const auto advance = [&] {  // like an odometer, the innermost loop fastest
    for (std::size_t i = slots.size(); i-- > 0;) {
      position[i] = (position[i] + 1) % counts[i];
      variables[slots[i]] = slots[i] == 0 ? static_cast<std::int64_t>(domain.processes[position[i]])
                                          : static_cast<std::int64_t>(position[i]);
      if (position[i] != 0) return true;
    }
    return false;
  };
  for (std::uint64_t calls = 0; calls < limit; ++calls) {
    if (!visit(variables) || !advance()) return true;
  }
  return false;
}

std::string describe_assignment(const VariableDomain& domain, const std::vector<std::size_t>& slots,
                                Variables variables) {
  std::vector<std::string> parts;
  parts.reserve(slots.size());
  for (const std::size_t slot : slots) {
    const std::int64_t first = slot == 0 ? 0 : domain.loops[slot - 1].first;
    parts.push_back(fmt::format("{} = {}", slot == 0 ? "process" : domain.loops[slot - 1].name,
                                variables[slot] + first));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::optional<std::string> leaves_range(const Expr& expr, std::int64_t low, std::int64_t high,
                                        const VariableDomain& domain) {
  if (expr.is_constant()) {
    if (expr.constant() >= low && expr.constant() <= high) return std::nullopt;
    return fmt::format("it is {}", expr.constant());
  }
  if (domain.runs_never()) return std::nullopt;
  const auto bounds = expr.bounds(intervals(domain));
  if (bounds && bounds->low >= low && bounds->high <= high) return std::nullopt;

  std::optional<std::string> reason;
  const auto slots = used_slots({&expr});
  const bool finished = for_each_assignment(domain, {&expr}, kMostEvaluations, [&](Variables v) {
    const auto value = expr.try_eval(v);
    if (value && *value >= low && *value <= high) return true;
    reason =
        fmt::format("it {} for {}", value ? fmt::format("is {}", *value) : "cannot be computed",
                    describe_assignment(domain, slots, v));
    return false;
  });
  if (!finished) {
    return fmt::format("it cannot be shown to stay there in all iterations (the first {} do)",
                       kMostEvaluations);
  }
  return reason;
}

std::optional<Expr> combine(Expr::Op op, const Expr& a, const Expr& b) {
  std::vector<Expr::Instruction> code;
  for (const Expr* side : {&a, &b}) {
    if (side->is_constant()) {
      code.push_back({Expr::Op::Constant, side->constant()});
    } else {
      code.insert(code.end(), side->code().begin(), side->code().end());
    }
  }
  code.push_back({op});
  return Expr::from_postfix(std::move(code));
}

}  // namespace foretrace
