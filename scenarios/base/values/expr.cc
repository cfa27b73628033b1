#include "scenarios/base/values/expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

using ExprOp = Expr::Op;
using Interval = Expr::Interval;

constexpr std::size_t kDeepestStack = 64;
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

// Division and remainder round down, as in Python and mathematics: (process - 1) % processes is the
// left neighbour, also of process 0. The divisor is neither 0 nor -1 with kMin.
std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}
std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  const std::int64_t rest = a % b;
  return (rest != 0 && (rest < 0) != (b < 0)) ? rest + b : rest;
}

/// False on overflow or a negative exponent.
bool power(std::int64_t base, std::int64_t exponent, std::int64_t& result) {
  if (exponent < 0) return false;
  if (base == 0 || base == 1) {
    result = exponent == 0 ? 1 : base;
    return true;
  }
  result = 1;
  if (base == -1) {
    result = exponent % 2 == 0 ? 1 : -1;
    return true;
  }
  for (; exponent > 0; --exponent) {  // at most 63 rounds until it overflows
    if (__builtin_mul_overflow(result, base, &result)) return false;
  }
  return true;
}

/// False on overflow, division by zero, negative exponent. No optional: it is read back in another
/// width than it was written, which stalls.
inline bool apply(ExprOp op, std::int64_t a, std::int64_t b, std::int64_t& result) {
  switch (op) {
    case ExprOp::Add:
      return !__builtin_add_overflow(a, b, &result);
    case ExprOp::Sub:
      return !__builtin_sub_overflow(a, b, &result);
    case ExprOp::Mul:
      return !__builtin_mul_overflow(a, b, &result);
    case ExprOp::Div:
      if (b == 0 || (a == kMin && b == -1)) return false;
      result = floor_div(a, b);
      return true;
    case ExprOp::Mod:
      if (b == 0) return false;
      result = b == -1 ? 0 : floor_mod(a, b);
      return true;
    case ExprOp::Pow:
      return power(a, b, result);
    case ExprOp::Min:
      result = std::min(a, b);
      return true;
    case ExprOp::Max:
      result = std::max(a, b);
      return true;
    case ExprOp::Less:
      result = a < b ? 1 : 0;
      return true;
    case ExprOp::LessEqual:
      result = a <= b ? 1 : 0;
      return true;
    case ExprOp::Equal:
      result = a == b ? 1 : 0;
      return true;
    case ExprOp::NotEqual:
      result = a != b ? 1 : 0;
      return true;
    case ExprOp::Constant:
    case ExprOp::Variable:
    case ExprOp::Neg:
    case ExprOp::Select:
      break;
  }
  return false;
}

std::optional<std::int64_t> apply(ExprOp op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return apply(op, a, b, result) ? std::optional{result} : std::nullopt;
}

/// False where a partial result overflows or is undefined.
bool evaluate(const std::vector<Expr::Instruction>& code, Variables variables,
              std::int64_t& result) {
  std::array<std::int64_t, kDeepestStack> stack;  // NOLINT: written before it is read
  std::size_t top = 0;
  for (const auto& [op, value] : code) {
    if (op == ExprOp::Constant) {
      stack[top++] = value;
    } else if (op == ExprOp::Variable) {
      stack[top++] = variables[static_cast<std::size_t>(value)];
    } else if (op == ExprOp::Neg) {
      if (!apply(ExprOp::Sub, 0, stack[top - 1], stack[top - 1])) return false;
    } else if (op == ExprOp::Select) {
      top -= 2;
      stack[top - 1] = stack[top - 1] != 0 ? stack[top] : stack[top + 1];
    } else {
      --top;
      if (!apply(op, stack[top - 1], stack[top], stack[top - 1])) return false;
    }
  }
  result = stack[0];
  return true;
}

/// Of a monotone operator the extremes lie at the corners.
std::optional<Interval> corners(ExprOp op, Interval a, Interval b) {
  Interval result{kMax, kMin};
  for (const std::int64_t x : {a.low, a.high}) {
    for (const std::int64_t y : {b.low, b.high}) {
      const auto value = apply(op, x, y);
      if (!value) return std::nullopt;
      result = {std::min(result.low, *value), std::max(result.high, *value)};
    }
  }
  return result;
}

std::optional<Interval> mod_bounds(Interval a, Interval b) {
  if (b.low == b.high && b.low > 0 && floor_div(a.low, b.low) == floor_div(a.high, b.low)) {
    return Interval{floor_mod(a.low, b.low), floor_mod(a.high, b.low)};
  }
  if (b.low > 0) return Interval{0, a.low >= 0 ? std::min(a.high, b.high - 1) : b.high - 1};
  if (b.high < 0) return Interval{b.low + 1, 0};
  return std::nullopt;
}

std::optional<Interval> pow_bounds(Interval base, Interval exponent) {
  if (exponent.low < 0) return std::nullopt;
  auto result = corners(ExprOp::Pow, base, exponent);
  if (!result || base.low >= 0) return result;
  // A negative base: parity decides the sign, and an exponent of 0 gives 1.
  const auto largest = apply(ExprOp::Pow, std::max(kMin + 1, base.low), exponent.high);
  if (!largest || *largest == kMin) return std::nullopt;
  const std::int64_t magnitude = std::max({*largest < 0 ? -*largest : *largest, std::int64_t{1},
                                           result->high, -std::max(kMin + 1, result->low)});
  return Interval{-magnitude, magnitude};
}

/// 0 ... 1, or the one of them that it always is.
Interval comparison_bounds(ExprOp op, Interval a, Interval b) {
  switch (op) {
    case ExprOp::Less:
      return {a.high < b.low ? 1 : 0, a.low < b.high ? 1 : 0};
    case ExprOp::LessEqual:
      return {a.high <= b.low ? 1 : 0, a.low <= b.high ? 1 : 0};
    case ExprOp::Equal:
      return {a.low == a.high && a == b ? 1 : 0, a.low <= b.high && b.low <= a.high ? 1 : 0};
    default: {
      const Interval equal = comparison_bounds(ExprOp::Equal, a, b);
      return {1 - equal.high, 1 - equal.low};
    }
  }
}

Interval select_bounds(Interval condition, Interval then, Interval otherwise) {
  if (condition.low > 0 || condition.high < 0) return then;
  if (condition.low == 0 && condition.high == 0) return otherwise;
  return {std::min(then.low, otherwise.low), std::max(then.high, otherwise.high)};
}

std::optional<Interval> bounds_of(ExprOp op, Interval a, Interval b) {
  switch (op) {
    case ExprOp::Add: {
      const auto low = apply(op, a.low, b.low);
      const auto high = apply(op, a.high, b.high);
      return low && high ? std::optional{Interval{*low, *high}} : std::nullopt;
    }
    case ExprOp::Sub: {
      const auto low = apply(op, a.low, b.high);
      const auto high = apply(op, a.high, b.low);
      return low && high ? std::optional{Interval{*low, *high}} : std::nullopt;
    }
    case ExprOp::Mul:
      return corners(op, a, b);
    case ExprOp::Div:
      return b.low <= 0 && b.high >= 0 ? std::nullopt : corners(op, a, b);
    case ExprOp::Mod:
      return mod_bounds(a, b);
    case ExprOp::Pow:
      return pow_bounds(a, b);
    case ExprOp::Min:
      return Interval{std::min(a.low, b.low), std::min(a.high, b.high)};
    case ExprOp::Max:
      return Interval{std::max(a.low, b.low), std::max(a.high, b.high)};
    case ExprOp::Less:
    case ExprOp::LessEqual:
    case ExprOp::Equal:
    case ExprOp::NotEqual:
      return comparison_bounds(op, a, b);
    case ExprOp::Constant:
    case ExprOp::Variable:
    case ExprOp::Neg:
    case ExprOp::Select:
      break;
  }
  return std::nullopt;
}

std::size_t operands_of(ExprOp op) {
  if (op == ExprOp::Constant || op == ExprOp::Variable) return 0;
  return op == ExprOp::Neg ? 1 : op == ExprOp::Select ? 3 : 2;
}

}  // namespace

std::optional<Expr> Expr::from_postfix(std::vector<Instruction> code) {
  std::size_t depth = 0;
  bool names_variable = false;
  for (const Instruction& step : code) {
    FORETRACE_CHECK(depth >= operands_of(step.op), "postfix code finds its operands");
    depth = depth - operands_of(step.op) + 1;
    if (depth > kDeepestStack) return std::nullopt;
    names_variable = names_variable || step.op == ExprOp::Variable;
  }
  FORETRACE_CHECK(depth == 1, "postfix code leaves one value");
  Expr result;
  if (names_variable) {
    result.code_ = std::move(code);
    return result;
  }
  std::int64_t value = 0;
  if (!evaluate(code, {}, value)) return std::nullopt;
  return Expr{value};
}

std::int64_t Expr::eval_code(Variables variables) const {
  if (code_.size() == 1) return variables[static_cast<std::size_t>(code_.front().value)];
  std::int64_t value = 0;
  const bool in_range = evaluate(code_, variables, value);
  FORETRACE_CHECK(in_range, "the scenario's check kept " + to_string() + " in range");
  return value;
}

std::optional<std::int64_t> Expr::try_eval(Variables variables) const {
  std::int64_t value = value_;
  if (!code_.empty() && !evaluate(code_, variables, value)) return std::nullopt;
  return value;
}

std::optional<Interval> Expr::bounds(std::span<const Interval> variable_ranges) const {
  if (code_.empty()) return Interval{value_, value_};
  std::vector<Interval> stack;
  for (const auto& [op, value] : code_) {
    if (op == ExprOp::Constant) {
      stack.push_back({value, value});
    } else if (op == ExprOp::Variable) {
      stack.push_back(variable_ranges[static_cast<std::size_t>(value)]);
    } else if (op == ExprOp::Neg) {
      const auto negated = bounds_of(ExprOp::Sub, {0, 0}, stack.back());
      if (!negated) return std::nullopt;
      stack.back() = *negated;
    } else if (op == ExprOp::Select) {
      const Interval otherwise = stack.back();
      stack.pop_back();
      const Interval then = stack.back();
      stack.pop_back();
      stack.back() = select_bounds(stack.back(), then, otherwise);
    } else {
      const Interval b = stack.back();
      stack.pop_back();
      const auto result = bounds_of(op, stack.back(), b);
      if (!result) return std::nullopt;
      stack.back() = *result;
    }
  }
  return stack.back();
}

std::string Expr::to_string() const {
  if (code_.empty()) return std::to_string(value_);
  const auto sign = [](ExprOp op) {
    switch (op) {
      case ExprOp::Add:
        return "+";
      case ExprOp::Sub:
        return "-";
      case ExprOp::Mul:
        return "*";
      case ExprOp::Div:
        return "/";
      case ExprOp::Mod:
        return "%";
      case ExprOp::Min:
        return "min";
      case ExprOp::Max:
        return "max";
      case ExprOp::Less:
        return "<";
      case ExprOp::LessEqual:
        return "<=";
      case ExprOp::Equal:
        return "==";
      case ExprOp::NotEqual:
        return "!=";
      default:
        return "**";
    }
  };
  std::vector<std::string> stack;
  for (const auto& [op, value] : code_) {
    if (op == ExprOp::Constant) {
      stack.push_back(std::to_string(value));
    } else if (op == ExprOp::Variable) {
      stack.push_back(fmt::format("v{}", value));
    } else if (op == ExprOp::Neg) {
      stack.back() = fmt::format("(-({}))", stack.back());
    } else if (op == ExprOp::Select) {
      const std::string otherwise = std::move(stack.back());
      stack.pop_back();
      const std::string then = std::move(stack.back());
      stack.pop_back();
      stack.back() = fmt::format("if({}, {}, {})", stack.back(), then, otherwise);
    } else {
      const std::string right = std::move(stack.back());
      stack.pop_back();
      stack.back() = fmt::format("(({}) {} ({}))", stack.back(), sign(op), right);
    }
  }
  return stack.back();
}

}  // namespace foretrace
