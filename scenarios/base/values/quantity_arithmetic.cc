#include "scenarios/base/values/quantity_arithmetic.h"

#include <fmt/format.h>

#include <cstdlib>

namespace foretrace {
namespace {

constexpr int kLargestExponent = 1024;
constexpr std::size_t kMostBits = 4096;  // of a fraction: 9 ** 999 ** 999 would fill the memory
constexpr int kHighestPower = 16;        // of a unit

using ExprOp = Expr::Op;

/// Nobody needs the hundredth power of a second.
std::optional<Unit> possible(Unit unit) {
  const bool small = std::abs(unit.bytes) <= kHighestPower && std::abs(unit.time) <= kHighestPower;
  return small ? std::optional{unit} : std::nullopt;
}

std::optional<Unit> unit_of(ExprOp op, const Quantity& left, const Quantity& right) {
  const Unit a = left.unit;
  const Unit b = right.unit;
  switch (op) {
    case ExprOp::Mul:
      return possible(Unit{a.bytes + b.bytes, a.time + b.time});
    case ExprOp::Div:
      return possible(Unit{a.bytes - b.bytes, a.time - b.time});
    case ExprOp::Less:
    case ExprOp::LessEqual:
    case ExprOp::Equal:
    case ExprOp::NotEqual:
      return a == b ? std::optional{kNumber} : std::nullopt;
    case ExprOp::Pow:
      // size ** n would have a unit that depends on n; nobody has asked for one yet.
      return a == kNumber && b == kNumber ? std::optional{kNumber} : std::nullopt;
    default:
      return a == b ? std::optional{a} : std::nullopt;
  }
}

std::optional<Rational> fold(ExprOp op, const Rational& a, const Rational& b) {
  switch (op) {
    case ExprOp::Add:
      return a + b;
    case ExprOp::Sub:
      return a - b;
    case ExprOp::Mul:
      return a * b;
    case ExprOp::Div:
      return b == 0 ? std::nullopt : std::optional<Rational>{a / b};
    case ExprOp::Mod:
      if (b == 0) return std::nullopt;
      return a - b * (a / b).floor();  // down, as Expr does
    case ExprOp::Min:
      return a < b ? a : b;
    case ExprOp::Max:
      return a < b ? b : a;
    case ExprOp::Less:
      return Rational{a < b ? 1 : 0};
    case ExprOp::LessEqual:
      return Rational{a <= b ? 1 : 0};
    case ExprOp::Equal:
      return Rational{a == b ? 1 : 0};
    case ExprOp::NotEqual:
      return Rational{a != b ? 1 : 0};
    default:
      break;
  }
  const bool is_small = b.is_whole() && b >= -kLargestExponent && b <= kLargestExponent;
  if (!is_small || (a == 0 && b < 0)) return std::nullopt;
  const auto exponent = static_cast<unsigned>(std::abs(*b.rounded()));
  if (a.bits() * exponent > kMostBits) return std::nullopt;
  return b < 0 ? 1 / a.power(exponent) : a.power(exponent);
}

std::string why_not_foldable(ExprOp op, const Rational& right) {
  if (op == ExprOp::Div || op == ExprOp::Mod) return "division by zero";
  return !right.is_whole() ? "the exponent must be whole" : "the power is out of range";
}

/// Adds the code of `side` to that of `result`.
std::optional<QuantityError> append(const Token& sign, Quantity& result, const Quantity& side) {
  if (!side.is_constant()) {
    result.code.insert(result.code.end(), side.code.begin(), side.code.end());
    return std::nullopt;
  }
  auto whole = to_expr(side, side.unit);
  if (!whole) {
    whole.error().offset = sign.offset;
    return whole.error();
  }
  result.code.push_back({ExprOp::Constant, whole->constant()});
  return std::nullopt;
}

Parsed<Quantity> combine_code(const Token& sign, ExprOp op, Unit unit, Quantity left,
                              Quantity right) {
  Quantity result{unit, {}, {}};
  for (const Quantity* side : {&left, &right}) {
    if (auto problem = append(sign, result, *side)) return tl::unexpected{*problem};
  }
  if ((op == ExprOp::Div || op == ExprOp::Mod) && right.is_constant() && right.constant == 0) {
    return fail_at(sign, "division by zero");
  }
  result.code.push_back({op});
  return result;
}

}  // namespace

tl::unexpected<QuantityError> fail_at(const Token& at, std::string message, std::string hint) {
  return tl::unexpected{QuantityError{std::move(message), std::move(hint), at.offset}};
}

Parsed<Quantity> combine(const Token& sign, ExprOp op, Quantity left, Parsed<Quantity> right) {
  if (!right) return right;
  const auto unit = unit_of(op, left, *right);
  if (!unit) {
    return fail_at(sign, fmt::format("{} {} {} has no meaning", describe(left.unit), sign.text,
                                     describe(right->unit)));
  }
  if (left.is_constant() && right->is_constant()) {
    const auto value = fold(op, left.constant, right->constant);
    if (!value) return fail_at(sign, why_not_foldable(op, right->constant));
    if (value->bits() > kMostBits) {
      return fail_at(sign, fmt::format("the number gets too large: more than {} bits", kMostBits));
    }
    return Quantity{*unit, *value, {}};
  }
  return combine_code(sign, op, *unit, std::move(left), std::move(*right));
}

Parsed<Quantity> truth(const Token& at, Quantity value, ExprOp op) {
  if (value.unit != kNumber) {
    return fail_at(at,
                   fmt::format("a condition is needed here, and this is {}", describe(value.unit)),
                   "compare it: size > 0B");
  }
  return combine(at, op, std::move(value), Quantity{kNumber, Rational{0}, {}});
}

Parsed<Quantity> selection(const Token& name, std::vector<Quantity> arguments) {
  if (arguments.size() != 3) return fail_at(name, "if takes three: if(condition, then, otherwise)");
  if (arguments[1].unit != arguments[2].unit) {
    return fail_at(name, fmt::format("{} or {}: both must be of one kind",
                                     describe(arguments[1].unit), describe(arguments[2].unit)));
  }
  auto condition = truth(name, std::move(arguments[0]));
  if (!condition) return condition;
  if (condition->is_constant()) return std::move(arguments[condition->constant != 0 ? 1 : 2]);
  Quantity result{arguments[1].unit, {}, std::move(condition->code)};
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    if (auto problem = append(name, result, arguments[i])) return tl::unexpected{*problem};
  }
  result.code.push_back({ExprOp::Select});
  return result;
}

}  // namespace foretrace
