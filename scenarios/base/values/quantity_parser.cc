#include <fmt/format.h>

#include <utility>

#include "scenarios/base/text/diagnostic.h"
#include "scenarios/base/values/quantity_arithmetic.h"

namespace foretrace {
namespace {

constexpr int kDeepestParentheses = 24;  // of parentheses and signs; an Expr's stack holds 64
constexpr std::size_t kLongestText = 1000;

using ExprOp = Expr::Op;

/// Recursive descent, as Python has it: or > and > not > comparison > sum > product > sign > power
/// > operand, all but the power from the left. A condition is a number: 1 where it holds, else 0.
class Parser {
 public:
  Parser(std::string_view text, const NameLookup& lookup) : lexer_{text}, lookup_{lookup} {}

  Parsed<Quantity> whole_expression() {
    auto result = condition();
    if (result && !lexer_.at_end()) return unexpected_token();
    return result;
  }

  Parsed<ParsedReference> whole_reference() {
    ParsedReference reference;
    const Token name = lexer_.take();
    if (name.kind != TokenKind::Name) return fail_at(name, "a name is expected here");
    reference.name = std::string{name.text};
    if (lexer_.take_symbol("(")) {
      do {
        auto index = condition();
        if (!index) return tl::unexpected{index.error()};
        reference.indices.push_back(std::move(*index));
      } while (lexer_.take_symbol(","));
      if (!lexer_.take_symbol(")")) {
        return fail_at(lexer_.peek(), "')' is missing",
                       "inside of {...} a comma ends the value: write 'x(0, 1)' in quotes");
      }
    }
    if (!lexer_.at_end()) return unexpected_token();
    return reference;
  }

 private:
  tl::unexpected<QuantityError> unexpected_token() {
    const Token& token = lexer_.peek();
    if (token.kind == TokenKind::End) return fail_at(token, "a number or a name is missing");
    if (token.kind == TokenKind::Bad) return fail_at(token, token.problem, token.hint);
    return fail_at(token, fmt::format("unexpected '{}'", token.text));
  }

  bool take_word(std::string_view word) {
    if (lexer_.peek().kind != TokenKind::Name || lexer_.peek().text != word) return false;
    lexer_.take();
    return true;
  }

  Parsed<Quantity> condition() {
    auto left = all_of();
    while (left) {
      const Token& word = lexer_.peek();
      if (!take_word("or")) break;
      left = both(word, ExprOp::Max, std::move(*left), all_of());
    }
    return left;
  }

  Parsed<Quantity> all_of() {
    auto left = negation();
    while (left) {
      const Token& word = lexer_.peek();
      if (!take_word("and")) break;
      left = both(word, ExprOp::Min, std::move(*left), negation());
    }
    return left;
  }

  static Parsed<Quantity> both(const Token& word, ExprOp op, Quantity left,
                               Parsed<Quantity> right) {
    if (!right) return right;
    auto first = truth(word, std::move(left));
    if (!first) return first;
    return combine(word, op, std::move(*first), truth(word, std::move(*right)));
  }

  Parsed<Quantity> negation() {
    const Token& word = lexer_.peek();
    if (!take_word("not")) return comparison();
    if (++nesting_ > kDeepestParentheses) return fail_at(word, "nested too deeply");
    auto operand = negation();
    --nesting_;
    return operand ? truth(word, std::move(*operand), ExprOp::Equal) : operand;
  }

  Parsed<Quantity> comparison() {
    auto left = sum();
    const Token& sign = lexer_.peek();
    if (!left || !take_comparison()) return left;
    auto right = sum();
    if (!right) return right;
    const Token& next = lexer_.peek();
    if (take_comparison()) {
      return fail_at(next, "two comparisons in a row", "write a < b and b < c");
    }
    if (sign.text == ">" || sign.text == ">=") std::swap(*left, *right);
    const ExprOp op = sign.text == "=="       ? ExprOp::Equal
                      : sign.text == "!="     ? ExprOp::NotEqual
                      : sign.text.size() == 2 ? ExprOp::LessEqual
                                              : ExprOp::Less;
    return combine(sign, op, std::move(*left), std::move(right));
  }

  bool take_comparison() {
    for (const char* sign : {"<", "<=", ">", ">=", "==", "!="}) {
      if (lexer_.take_symbol(sign)) return true;
    }
    return false;
  }

  Parsed<Quantity> sum() {
    auto left = product();
    while (left) {
      const Token& sign = lexer_.peek();
      const ExprOp op = sign.text == "+" ? ExprOp::Add : ExprOp::Sub;
      if (!lexer_.take_symbol("+") && !lexer_.take_symbol("-")) break;
      left = combine(sign, op, std::move(*left), product());
    }
    return left;
  }

  Parsed<Quantity> product() {
    auto left = signed_operand();
    while (left) {
      const Token& sign = lexer_.peek();
      const ExprOp op = sign.text == "*"   ? ExprOp::Mul
                        : sign.text == "/" ? ExprOp::Div
                                           : ExprOp::Mod;
      if (!lexer_.take_symbol("*") && !lexer_.take_symbol("/") && !lexer_.take_symbol("%")) break;
      left = combine(sign, op, std::move(*left), signed_operand());
    }
    return left;
  }

  Parsed<Quantity> signed_operand() {
    const Token& sign = lexer_.peek();
    if (lexer_.take_symbol("-")) {
      if (++nesting_ > kDeepestParentheses) return fail_at(sign, "nested too deeply");
      auto operand = signed_operand();
      --nesting_;
      if (!operand) return operand;
      if (operand->is_constant()) {
        operand->constant = 0 - operand->constant;
      } else {
        operand->code.push_back({ExprOp::Neg});
      }
      return operand;
    }
    return power();
  }

  Parsed<Quantity> power() {
    auto base = operand();
    const Token& sign = lexer_.peek();
    if (!base || !lexer_.take_symbol("**")) return base;
    if (++nesting_ > kDeepestParentheses) return fail_at(sign, "nested too deeply");
    auto exponent = signed_operand();
    --nesting_;
    return combine(sign, ExprOp::Pow, std::move(*base), std::move(exponent));
  }

  Parsed<Quantity> operand() {
    const Token& token = lexer_.peek();
    if (token.kind == TokenKind::Number) {
      Token number = lexer_.take();
      return Quantity{number.unit, std::move(number.value), {}};
    }
    if (token.kind == TokenKind::Name) {
      lexer_.take();
      if (lexer_.peek().text == "(" && is_function(token.text)) return function(token);
      auto found = lookup_(token.text);
      if (!found && lexer_.peek().text == "(" && !found.error().is_told) {
        return fail_at(token, fmt::format("unknown function '{}'", token.text),
                       suggest(token.text, {"min", "max", "if"}));
      }
      if (!found) found.error().offset = token.offset;
      return found;
    }
    if (lexer_.take_symbol("(")) {
      if (++nesting_ > kDeepestParentheses) return fail_at(token, "nested too deeply");
      auto inner = condition();
      --nesting_;
      if (inner && !lexer_.take_symbol(")")) return fail_at(lexer_.peek(), "')' is missing");
      return inner;
    }
    return unexpected_token();
  }

  static bool is_function(std::string_view name) {
    return name == "min" || name == "max" || name == "if";
  }

  /// min(a, b, ...), max(a, b, ...), if(condition, a, b).
  Parsed<Quantity> function(const Token& name) {
    lexer_.take_symbol("(");
    if (++nesting_ > kDeepestParentheses) return fail_at(name, "nested too deeply");
    std::vector<Quantity> arguments;
    do {
      auto argument = condition();
      if (!argument) return argument;
      arguments.push_back(std::move(*argument));
    } while (lexer_.take_symbol(","));
    --nesting_;
    if (!lexer_.take_symbol(")")) {
      return fail_at(lexer_.peek(), "')' is missing",
                     "inside of {...} a comma ends the value: write 'min(a, b)' in quotes");
    }
    if (name.text == "if") return selection(name, std::move(arguments));
    if (arguments.size() < 2) return fail_at(name, fmt::format("{} takes two or more", name.text));
    Parsed<Quantity> result{std::move(arguments.front())};
    for (std::size_t i = 1; result && i < arguments.size(); ++i) {
      result = combine(name, name.text == "min" ? ExprOp::Min : ExprOp::Max, std::move(*result),
                       std::move(arguments[i]));
    }
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

}  // namespace

Parsed<Quantity> parse_quantity(std::string_view text, const NameLookup& lookup) {
  if (text.size() > kLongestText) return too_long();
  return Parser{text, lookup}.whole_expression();
}

Parsed<ParsedReference> parse_reference(std::string_view text, const NameLookup& lookup) {
  if (text.size() > kLongestText) return too_long();
  return Parser{text, lookup}.whole_reference();
}

}  // namespace foretrace
