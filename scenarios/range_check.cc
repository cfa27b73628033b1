#include "scenarios/range_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace foretrace {
namespace {

constexpr std::uint64_t kMostEvaluations = std::uint64_t{1} << 24;  // about 0.2 s

std::vector<Expr::Interval> intervals(const VariableDomain& domain) {
  std::vector<Expr::Interval> ranges{{domain.processes.front(), domain.processes.back()}};
  for (const auto& loop : domain.loops) ranges.push_back({0, loop.times - 1});
  return ranges;
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

bool for_each_assignment(const VariableDomain& domain, const std::vector<std::size_t>& slots,
                         std::uint64_t limit, const std::function<bool(Variables)>& visit) {
  if (domain.runs_never()) return true;
  std::vector<std::int64_t> variables(domain.loops.size() + 1, 0);
  std::vector<std::size_t> position(slots.size(), 0);
  variables[0] = domain.processes.front();
  const auto advance = [&] {  // like an odometer, the innermost loop fastest
    for (std::size_t i = slots.size(); i-- > 0;) {
      const std::size_t slot = slots[i];
      const auto count = slot == 0 ? domain.processes.size()
                                   : static_cast<std::size_t>(domain.loops[slot - 1].times);
      position[i] = (position[i] + 1) % count;
      variables[slot] = slot == 0 ? static_cast<std::int64_t>(domain.processes[position[i]])
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
  for (const std::size_t slot : slots) {
    parts.push_back(fmt::format("{} = {}", slot == 0 ? "process" : domain.loops[slot - 1].name,
                                variables[slot]));
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
  const bool finished = for_each_assignment(domain, slots, kMostEvaluations, [&](Variables v) {
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
