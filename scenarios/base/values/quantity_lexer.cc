#include "scenarios/base/values/quantity_lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <utility>

#include "scenarios/base/text/diagnostic.h"
#include "scenarios/base/text/words.h"

namespace foretrace {
namespace {

constexpr std::size_t kMostDigits = 40;
constexpr int kLargestDecimalExponent = 40;

struct UnitName {
  std::string_view name;
  Unit unit;
  std::int64_t numerator;  ///< of the factor to base units: bytes, picoseconds, bytes/picosecond
  std::int64_t denominator = 1;
};

constexpr std::int64_t kPicosecondsPerSecond = 1'000'000'000'000;
constexpr std::array kUnits{
    UnitName{"B", kSize, 1},
    UnitName{"KiB", kSize, 1LL << 10},
    UnitName{"MiB", kSize, 1LL << 20},
    UnitName{"GiB", kSize, 1LL << 30},
    UnitName{"TiB", kSize, 1LL << 40},
    UnitName{"KB", kSize, 1'000},
    UnitName{"MB", kSize, 1'000'000},
    UnitName{"GB", kSize, 1'000'000'000},
    UnitName{"TB", kSize, 1'000'000'000'000},
    UnitName{"ps", kTime, 1},
    UnitName{"ns", kTime, 1'000},
    UnitName{"us", kTime, 1'000'000},
    UnitName{"ms", kTime, 1'000'000'000},
    UnitName{"s", kTime, kPicosecondsPerSecond},
    UnitName{"B/s", kRate, 1, kPicosecondsPerSecond},
    UnitName{"KiB/s", kRate, 1LL << 10, kPicosecondsPerSecond},
    UnitName{"MiB/s", kRate, 1LL << 20, kPicosecondsPerSecond},
    UnitName{"GiB/s", kRate, 1LL << 30, kPicosecondsPerSecond},
    UnitName{"TiB/s", kRate, 1LL << 40, kPicosecondsPerSecond},
    UnitName{"KB/s", kRate, 1'000, kPicosecondsPerSecond},
    UnitName{"MB/s", kRate, 1'000'000, kPicosecondsPerSecond},
    UnitName{"GB/s", kRate, 1'000'000'000, kPicosecondsPerSecond},
    UnitName{"TB/s", kRate, 1'000'000'000'000, kPicosecondsPerSecond},
    UnitName{"Kb/s", kRate, 1'000, 8 * kPicosecondsPerSecond},  // bits, as NICs are sold
    UnitName{"Mb/s", kRate, 1'000'000, 8 * kPicosecondsPerSecond},
    UnitName{"Gb/s", kRate, 1'000'000'000, 8 * kPicosecondsPerSecond},
    UnitName{"Tb/s", kRate, 1'000'000'000'000, 8 * kPicosecondsPerSecond},
    UnitName{"k", kNumber, 1LL << 10},  // as sequences are counted: 16k is 16,384
    UnitName{"M", kNumber, 1LL << 20},
};

/// "did you mean 'KB'?" of kB: the unit that is nearest, whatever is written large or small, and of
/// those that are as near one that begins as `name` does, bytes before bits. Empty: none is near.
std::string nearest_unit(std::string_view name) {
  const std::string given = lower(name);
  std::vector<std::string> known;  // suggest takes the first of those that are as near
  for (const bool begins_alike : {true, false}) {
    for (const UnitName& unit : kUnits) {
      std::string one = lower(unit.name);
      if (one.starts_with(given.front()) == begins_alike) known.push_back(std::move(one));
    }
  }
  const std::string hint = suggest(given, known);
  for (const UnitName& unit : kUnits) {
    if (hint == fmt::format("did you mean '{}'?", lower(unit.name))) {
      return fmt::format("did you mean '{}'?", unit.name);
    }
  }
  return {};
}

/// Units as other programs write them; of all units together none is near to a longer word.
std::string hint_for(std::string_view name) {
  constexpr std::string_view kBits =
      "'b' is a bit: sizes are in bytes, 'GB' or 'GiB'; rates of bits end in /s, 'Gb/s'";
  if (name == "b" || name == "Kb" || name == "Mb" || name == "Gb" || name == "Tb") {
    return std::string{kBits};
  }
  constexpr std::array<std::pair<std::string_view, std::string_view>, 28> kOthers{
      {{"sec", "s"},
       {"secs", "s"},
       {"second", "s"},
       {"seconds", "s"},
       {"msec", "ms"},
       {"msecs", "ms"},
       {"millisecond", "ms"},
       {"milliseconds", "ms"},
       {"usec", "us"},
       {"usecs", "us"},
       {"microsecond", "us"},
       {"microseconds", "us"},
       {"nsec", "ns"},
       {"nsecs", "ns"},
       {"nanosecond", "ns"},
       {"nanoseconds", "ns"},
       {"Gbps", "Gb/s"},
       {"gbps", "Gb/s"},
       {"Gbit/s", "Gb/s"},
       {"gbit/s", "Gb/s"},
       {"Mbps", "Mb/s"},
       {"Mbit/s", "Mb/s"},
       {"Tbps", "Tb/s"},
       {"Tbit/s", "Tb/s"},
       {"GBps", "GB/s"},
       {"MBps", "MB/s"},
       {"byte", "B"},
       {"bytes", "B"}}};
  const auto* other = std::ranges::find(kOthers, name, [](const auto& pair) { return pair.first; });
  if (other != kOthers.end()) return fmt::format("did you mean '{}'?", other->second);
  for (const char* const scale : {"K", "M", "G", "T"}) {  // "gb/s": bytes or bits?
    if (lower(name) != lower(fmt::format("{}b/s", scale))) continue;
    return fmt::format("did you mean '{0}B/s' (bytes) or '{0}b/s' (bits)?", scale);
  }
  const std::string nearest = nearest_unit(name);
  if (!nearest.empty()) return nearest;
  return "sizes end in B, KiB, MiB, GiB, TiB, KB, MB, GB or TB, times in ps, ns, us, ms or s, "
         "rates in a size's unit and /s or in Kb/s, Mb/s, Gb/s or Tb/s, counts in k (1,024) or M";
}

bool is_number_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_{text} {}

  std::vector<Token> all() {
    std::vector<Token> tokens;
    do {
      tokens.push_back(next());
    } while (tokens.back().kind != TokenKind::End && tokens.back().kind != TokenKind::Bad);
    if (tokens.back().kind == TokenKind::Bad) tokens.push_back(make(TokenKind::End, text_.size()));
    return tokens;
  }

 private:
  char at(std::size_t position) const { return position < text_.size() ? text_[position] : '\0'; }
  void skip_spaces() {
    while (is_space(at(position_))) ++position_;
  }
  Token make(TokenKind kind, std::size_t begin) const {
    return {kind, text_.substr(begin, position_ - begin), begin};
  }
  Token bad(std::size_t begin, std::string problem, std::string hint = {}) const {
    Token token = make(TokenKind::Bad, begin);
    token.problem = std::move(problem);
    token.hint = std::move(hint);
    return token;
  }

  Token next() {
    skip_spaces();
    const std::size_t begin = position_;
    const char c = at(position_);
    if (position_ >= text_.size()) return make(TokenKind::End, begin);
    if (is_number_digit(c) || (c == '.' && is_number_digit(at(position_ + 1)))) return number();
    if (is_word_letter(c) || (c == '$' && is_word_letter(at(position_ + 1)))) {
      ++position_;
      while (is_word_letter(at(position_)) || is_number_digit(at(position_))) ++position_;
      return make(TokenKind::Name, begin);
    }
    constexpr std::array<std::string_view, 5> kPairs{"**", "<=", ">=", "==", "!="};
    if (std::ranges::find(kPairs, text_.substr(begin, 2)) != kPairs.end()) {
      position_ += 2;
      return make(TokenKind::Symbol, begin);
    }
    ++position_;
    if (std::string_view{"+-*/%(),<>"}.find(c) != std::string_view::npos) {
      return make(TokenKind::Symbol, begin);
    }
    if (c == '=') return bad(begin, "'=' is no operator here", "did you mean '=='?");
    return bad(begin, "this is not a quantity such as 64MiB, 50us or $n * 4B");
  }

  std::string take_digits() {
    const std::size_t begin = position_;
    while (is_number_digit(at(position_))) ++position_;
    return std::string{text_.substr(begin, position_ - begin)};
  }

  Token number() {
    const std::size_t begin = position_;
    std::string digits = take_digits();
    int exponent = 0;
    if (at(position_) == '.') {
      ++position_;
      const std::string fraction = take_digits();
      digits += fraction;
      exponent = -static_cast<int>(std::min(fraction.size(), kMostDigits + 1));
    }
    if (digits.size() > kMostDigits) return bad(begin, "a number with too many digits");
    const bool has_sign = at(position_ + 1) == '-' || at(position_ + 1) == '+';
    if (at(position_) == 'e' && is_number_digit(at(position_ + (has_sign ? 2 : 1)))) {
      const bool negative = at(position_ + 1) == '-';
      position_ += has_sign ? 2 : 1;
      const std::string power = take_digits();
      if (power.size() > 2) return bad(begin, "a number out of range");
      exponent += (negative ? -1 : 1) * std::stoi(power);
    }
    if (std::abs(exponent) > 2 * kLargestDecimalExponent)
      return bad(begin, "a number out of range");
    digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));  // not octal
    return with_unit(begin, Rational::from_decimal(digits, exponent));
  }

  Token with_unit(std::size_t begin, Rational value) {
    const std::size_t after_number = position_;
    if (at(position_) == '%' && percent_sign_ends_operand()) {
      ++position_;
      return finish_number(begin, value / 100, kNumber);
    }
    skip_spaces();
    if (!is_word_letter(at(position_))) {
      position_ = after_number;
      return finish_number(begin, std::move(value), kNumber);
    }
    const std::size_t unit_begin = position_;
    while (is_word_letter(at(position_)) || is_number_digit(at(position_))) ++position_;
    const bool is_rate = at(position_) == '/' && at(position_ + 1) == 's' &&
                         !is_word_letter(at(position_ + 2)) && !is_number_digit(at(position_ + 2));
    if (is_rate) position_ += 2;
    const auto name = text_.substr(unit_begin, position_ - unit_begin);
    if (name == "and" || name == "or") {  // "i < 3 and ...": no unit
      position_ = after_number;
      return finish_number(begin, std::move(value), kNumber);
    }
    const auto* unit = std::ranges::find(kUnits, name, &UnitName::name);
    if (unit == kUnits.end()) return unknown_unit(unit_begin, name);
    const bool is_base = unit->numerator == 1 && unit->denominator == 1;
    if (!is_base) value = value * Rational{unit->numerator, unit->denominator};
    return finish_number(begin, std::move(value), unit->unit);
  }

  /// "90%" ends here; "5%2" is a remainder.
  bool percent_sign_ends_operand() const {
    std::size_t after = position_ + 1;
    while (is_space(at(after))) ++after;
    const char c = at(after);
    return !(is_number_digit(c) || is_word_letter(c) || c == '$' || c == '(' || c == '.');
  }

  Token finish_number(std::size_t begin, Rational value, Unit unit) const {
    Token token = make(TokenKind::Number, begin);
    token.value = std::move(value);
    token.unit = unit;
    return token;
  }

  Token unknown_unit(std::size_t begin, std::string_view name) const {
    return bad(begin, fmt::format("unknown unit '{}'", name), hint_for(name));
  }

  std::string_view text_;
  std::size_t position_ = 0;
};

}  // namespace

Lexer::Lexer(std::string_view text) : tokens_{Scanner{text}.all()} {}

Token Lexer::take() {
  const bool is_last = next_ + 1 == tokens_.size();
  return is_last ? tokens_[next_] : std::move(tokens_[next_++]);
}

bool Lexer::take_symbol(std::string_view symbol) {
  if (peek().kind != TokenKind::Symbol || peek().text != symbol) return false;
  ++next_;
  return true;
}

}  // namespace foretrace
