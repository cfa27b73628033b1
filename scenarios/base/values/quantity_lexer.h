// Splits "4 * $n + 24.5 GB/s" into numbers with their units, names and signs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/base/values/quantity.h"

namespace foretrace {

enum class TokenKind { Number, Name, Symbol, Bad, End };

struct Token {
  TokenKind kind = TokenKind::End;
  std::string_view text;
  std::size_t offset = 0;
  Rational value{};       ///< Number: in base units
  Unit unit{};            ///< Number
  std::string problem{};  ///< Bad: what is wrong
  std::string hint{};
};

class Lexer {
 public:
  explicit Lexer(std::string_view text);

  /// Stays where it is; once it is taken, only its kind, text, offset and unit are left.
  const Token& peek() const { return tokens_[next_]; }
  Token take();
  bool take_symbol(std::string_view symbol);
  bool at_end() const { return peek().kind == TokenKind::End; }

 private:
  std::vector<Token> tokens_;  ///< the last one is End
  std::size_t next_ = 0;
};

}  // namespace foretrace
