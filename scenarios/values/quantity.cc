#include "scenarios/values/quantity.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <limits>

#include "scenarios/text/diagnostic.h"
#include "scenarios/values/quantity_lexer.h"

namespace foretrace {
namespace {

constexpr int kDeepestNesting = 24;  // of parentheses and signs; an Expr's stack holds 64
constexpr std::size_t kLongestText = 1000;
constexpr int kLargestExponent = 1024;
constexpr std::size_t kMostBits = 4096;  // of a fraction: 9 ** 999 ** 999 would fill the memory
constexpr int kHighestPower = 16;        // of a unit

using Op = Expr::Op;

/// Recursive descent: sum > product > sign > power > operand, all but the power from the left.
class Parser {
 public:
  Parser(std::string_view text, const NameLookup& lookup) : lexer_{text}, lookup_{lookup} {}

  Parsed<Quantity> whole_expression() {
    auto result = sum();
    if (result && !lexer_.at_end()) return unexpected_token();
    return result;
  }

  Parsed<ParsedReference> whole_reference() {
    ParsedReference reference;
    const Token name = lexer_.take();
    if (name.kind != TokenKind::Name) return fail(name, "a name is expected here");
    reference.name = std::string{name.text};
    if (lexer_.take_symbol("(")) {
      do {
        auto index = sum();
        if (!index) return tl::unexpected{index.error()};
        reference.indices.push_back(std::move(*index));
      } while (lexer_.take_symbol(","));
      if (!lexer_.take_symbol(")")) {
        return fail(lexer_.peek(), "')' is missing",
                    "inside of {...} a comma ends the value: write 'x(0, 1)' in quotes");
      }
    }
    if (!lexer_.at_end()) return unexpected_token();
    return reference;
  }

 private:
  static tl::unexpected<QuantityError> fail(const Token& at, std::string message,
                                            std::string hint = {}) {
    return tl::unexpected{QuantityError{std::move(message), std::move(hint), at.offset}};
  }
  tl::unexpected<QuantityError> unexpected_token() {
    const Token token = lexer_.peek();
    if (token.kind == TokenKind::End) return fail(token, "a number or a name is missing");
    if (token.kind == TokenKind::Bad) return fail(token, token.problem, token.hint);
    return fail(token, fmt::format("unexpected '{}'", token.text));
  }

  Parsed<Quantity> sum() {
    auto left = product();
    while (left) {
      const Token sign = lexer_.peek();
      const Op op = sign.text == "+" ? Op::Add : Op::Sub;
      if (!lexer_.take_symbol("+") && !lexer_.take_symbol("-")) break;
      left = combine(sign, op, std::move(*left), product());
    }
    return left;
  }

  Parsed<Quantity> product() {
    auto left = signed_operand();
    while (left) {
      const Token sign = lexer_.peek();
      const Op op = sign.text == "*" ? Op::Mul : sign.text == "/" ? Op::Div : Op::Mod;
      if (!lexer_.take_symbol("*") && !lexer_.take_symbol("/") && !lexer_.take_symbol("%")) break;
      left = combine(sign, op, std::move(*left), signed_operand());
    }
    return left;
  }

  Parsed<Quantity> signed_operand() {
    const Token sign = lexer_.peek();
    if (lexer_.take_symbol("-")) {
      if (++nesting_ > kDeepestNesting) return fail(sign, "nested too deeply");
      auto operand = signed_operand();
      --nesting_;
      if (!operand) return operand;
      if (operand->is_constant()) {
        operand->constant = -operand->constant;
      } else {
        operand->code.push_back({Op::Neg});
      }
      return operand;
    }
    return power();
  }

  Parsed<Quantity> power() {
    auto base = operand();
    const Token sign = lexer_.peek();
    if (!base || !lexer_.take_symbol("**")) return base;
    if (++nesting_ > kDeepestNesting) return fail(sign, "nested too deeply");
    auto exponent = signed_operand();
    --nesting_;
    return combine(sign, Op::Pow, std::move(*base), std::move(exponent));
  }

  Parsed<Quantity> operand() {
    const Token token = lexer_.peek();
    if (token.kind == TokenKind::Number) {
      lexer_.take();
      return Quantity{token.unit, token.value, {}};
    }
    if (token.kind == TokenKind::Name) {
      lexer_.take();
      auto found = lookup_(token.text);
      if (!found) found.error().offset = token.offset;
      return found;
    }
    if (lexer_.take_symbol("(")) {
      if (++nesting_ > kDeepestNesting) return fail(token, "nested too deeply");
      auto inner = sum();
      --nesting_;
      if (inner && !lexer_.take_symbol(")")) return fail(lexer_.peek(), "')' is missing");
      return inner;
    }
    return unexpected_token();
  }

  static Parsed<Quantity> combine(const Token& sign, Op op, Quantity left, Parsed<Quantity> right) {
    if (!right) return right;
    const auto unit = unit_of(op, left, *right);
    if (!unit) {
      return fail(sign, fmt::format("{} {} {} has no meaning", describe(left.unit), sign.text,
                                    describe(right->unit)));
    }
    if (left.is_constant() && right->is_constant()) {
      const auto value = fold(op, left.constant, right->constant);
      if (!value) return fail(sign, why_not_foldable(op, right->constant));
      if (bits_of(*value) > kMostBits) {
        return fail(sign, fmt::format("the number gets too large: more than {} bits", kMostBits));
      }
      return Quantity{*unit, *value, {}};
    }
    return combine_code(sign, op, *unit, std::move(left), std::move(*right));
  }

  static std::optional<Unit> unit_of(Op op, const Quantity& left, const Quantity& right) {
    const Unit a = left.unit;
    const Unit b = right.unit;
    switch (op) {
      case Op::Mul:
        return possible(Unit{a.bytes + b.bytes, a.time + b.time});
      case Op::Div:
        return possible(Unit{a.bytes - b.bytes, a.time - b.time});
      case Op::Pow:
        // size ** n would have a unit that depends on n; nobody has asked for one yet.
        return a == kNumber && b == kNumber ? std::optional{kNumber} : std::nullopt;
      default:
        return a == b ? std::optional{a} : std::nullopt;
    }
  }

  /// Nobody needs the hundredth power of a second.
  static std::optional<Unit> possible(Unit unit) {
    const bool small =
        std::abs(unit.bytes) <= kHighestPower && std::abs(unit.time) <= kHighestPower;
    return small ? std::optional{unit} : std::nullopt;
  }

  static std::size_t bits_of(const Rational& value) {
    return msb(abs(numerator(value)) + 1) + msb(denominator(value));
  }

  static std::optional<Rational> fold(Op op, const Rational& a, const Rational& b) {
    switch (op) {
      case Op::Add:
        return a + b;
      case Op::Sub:
        return a - b;
      case Op::Mul:
        return a * b;
      case Op::Div:
        return b == 0 ? std::nullopt : std::optional<Rational>{a / b};
      case Op::Mod: {
        if (b == 0) return std::nullopt;
        const Rational quotient = a / b;
        auto whole = numerator(quotient) / denominator(quotient);  // towards zero
        if (quotient < 0 && Rational{whole} != quotient) --whole;  // down, as Expr does
        return Rational{a - b * Rational{whole}};
      }
      default:
        break;
    }
    if (denominator(b) != 1 || abs(b) > kLargestExponent || (a == 0 && b < 0)) return std::nullopt;
    const auto exponent = static_cast<unsigned>(abs(b));
    if (bits_of(a) * exponent > kMostBits) return std::nullopt;
    const Rational result{pow(numerator(a), exponent), pow(denominator(a), exponent)};
    return b < 0 ? Rational{1 / result} : result;
  }

  static std::string why_not_foldable(Op op, const Rational& right) {
    if (op == Op::Div || op == Op::Mod) return "division by zero";
    return denominator(right) != 1 ? "the exponent must be whole" : "the power is out of range";
  }

  static Parsed<Quantity> combine_code(const Token& sign, Op op, Unit unit, Quantity left,
                                       Quantity right) {
    Quantity result{unit, {}, {}};
    for (Quantity* side : {&left, &right}) {
      if (side->is_constant()) {
        auto whole = to_expr(*side, side->unit);
        if (!whole) {
          whole.error().offset = sign.offset;
          return tl::unexpected{whole.error()};
        }
        result.code.push_back({Op::Constant, whole->constant()});
      } else {
        result.code.insert(result.code.end(), side->code.begin(), side->code.end());
      }
    }
    if ((op == Op::Div || op == Op::Mod) && right.is_constant() && right.constant == 0) {
      return fail(sign, "division by zero");
    }
    result.code.push_back({op});
    return result;
  }

  Lexer lexer_;
  const NameLookup& lookup_;
  int nesting_ = 0;
};

tl::unexpected<QuantityError> too_long() {
  return tl::unexpected{
      QuantityError{fmt::format("longer than {} characters", kLongestText), {}, 0}};
}

std::string missing_unit_hint(const Quantity& quantity, Unit unit) {
  if (!quantity.is_constant() || quantity.unit != kNumber) return {};
  const std::string number = quantity.constant.str();
  if (unit == kSize) return fmt::format("did you mean {0}B, {0}KiB or {0}MiB?", number);
  if (unit == kTime) return fmt::format("did you mean {0}us, {0}ms or {0}ns?", number);
  if (unit == kRate) return fmt::format("did you mean {} GB/s?", number);
  return {};
}

boost::multiprecision::cpp_int round_half_away(const Rational& value) {
  const Rational shifted =
      value < 0 ? Rational{value - Rational{1, 2}} : Rational{value + Rational{1, 2}};
  return numerator(shifted) / denominator(shifted);
}

}  // namespace

std::string describe(Unit unit) {
  if (unit == kNumber) return "a plain number";
  if (unit == kSize) return "a size";
  if (unit == kTime) return "a time";
  if (unit == kRate) return "a rate";
  return fmt::format("bytes^{} time^{}", unit.bytes, unit.time);
}

Parsed<Quantity> parse_quantity(std::string_view text, const NameLookup& lookup) {
  if (text.size() > kLongestText) return too_long();
  return Parser{text, lookup}.whole_expression();
}

Parsed<ParsedReference> parse_reference(std::string_view text, const NameLookup& lookup) {
  if (text.size() > kLongestText) return too_long();
  return Parser{text, lookup}.whole_reference();
}

Parsed<Expr> to_expr(const Quantity& quantity, Unit unit) {
  const auto fail = [](std::string message, std::string hint = {}) {
    return tl::unexpected{QuantityError{std::move(message), std::move(hint), 0}};
  };
  if (quantity.unit != unit) {
    const bool unitless = quantity.unit == kNumber;
    return fail(fmt::format("{} is needed here, and this is {}", describe(unit),
                            unitless ? "a number without a unit" : describe(quantity.unit)),
                missing_unit_hint(quantity, unit));
  }
  if (!quantity.is_constant()) {
    auto expr = Expr::from_postfix(quantity.code);
    if (!expr) return fail("the expression is too long");
    return *std::move(expr);
  }
  if (unit != kTime && denominator(quantity.constant) != 1) {
    return fail(fmt::format("{} is needed here, and this is {}",
                            unit == kSize ? "a whole number of bytes" : "a whole number",
                            quantity.constant.str()));
  }
  const auto value = round_half_away(quantity.constant);
  constexpr auto kInt64Max = std::numeric_limits<std::int64_t>::max();
  if (value > kInt64Max || value < -kInt64Max) {
    const char* most = unit == kSize   ? "a size can be at most 2^63 - 1 bytes"
                       : unit == kTime ? "a time can be at most 106 days"
                                       : "a number can be at most 2^63 - 1";
    return fail(fmt::format("out of range: {}", most));
  }
  return Expr{static_cast<std::int64_t>(value)};
}

std::optional<double> to_double(const Quantity& quantity) {
  if (!quantity.is_constant()) return std::nullopt;
  return static_cast<double>(quantity.constant);
}

}  // namespace foretrace
