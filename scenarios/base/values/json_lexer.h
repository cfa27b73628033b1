// JSON's tokens, read piece by piece at several hundred megabytes a second: traces have gigabytes,
// and a third of a trace is spaces. It takes what is right and nothing else: where it stops, the
// full parser, which comes to the same tokens, says why.
#pragma once

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <streambuf>
#include <string>
#include <string_view>
#include <vector>

namespace foretrace {

/// Whether bytes are well-formed UTF-8 (RFC 3629).
bool is_utf8(std::string_view bytes);
/// Of what stands between the quotes, escapes and all; false where that is no JSON.
bool unescape_json(std::string_view raw, std::string& text);

/// Tells a handler: begin_object(), end_object(), begin_array(), end_array(), key(text),
/// text(text), integer(value, as written), fraction(as written), word() of true, false and null.
/// Texts hold until the handler returns.
template <class Handler>
class JsonLexer {
 public:
  /// `longest`: bytes of one token.
  JsonLexer(std::streambuf& source, std::size_t longest, Handler& handler)
      : source_{source}, longest_{longest}, handler_{handler} {}

  /// False where this is no JSON text, or one that the full parser must look at.
  bool read() {
    const char first = next();
    if (first != '{' && first != '[') return false;
    if (!open(first)) return false;
    while (!open_.empty()) {
      if (!(open_.back() == '{' ? member() : element())) return false;
    }
    return next() == kEnd && at_ == end_;
  }

 private:
  static constexpr char kEnd = '\0';
  static constexpr std::size_t kPiece = 64 * 1024;
  static constexpr std::size_t kDeepest = 256;

  /// More of the source behind what is kept from `from` on, which moves. False at the end.
  bool refill(const char*& from) {
    const auto kept = static_cast<std::size_t>(end_ - from);
    const auto offset = static_cast<std::size_t>(at_ - from);
    if (kept > longest_) return false;
    if (buffer_.size() < kept + kPiece) {
      std::vector<char> larger(2 * kept + kPiece);
      if (kept > 0) std::memcpy(larger.data(), from, kept);
      buffer_.swap(larger);
    } else if (kept > 0) {
      std::memmove(buffer_.data(), from, kept);
    }
    const auto room = static_cast<std::streamsize>(buffer_.size() - kept);
    const auto got = source_.sgetn(buffer_.data() + kept, room);
    from = buffer_.data();
    at_ = from + offset;
    end_ = from + kept + got;
    return got > 0;
  }
  bool more() {
    const char* from = at_;
    return at_ != end_ || refill(from);
  }

  /// The next character that is no space; kEnd behind the last one.
  char next() {
    for (;;) {
      while (at_ != end_) {
        const char c = *at_;
        if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return c;
        ++at_;
      }
      if (!more()) return kEnd;
    }
  }

  bool open(char bracket) {
    ++at_;
    if (open_.size() == kDeepest) return false;
    open_.push_back(bracket);
    is_first_ = true;
    if (bracket == '{') {
      handler_.begin_object();
    } else {
      handler_.begin_array();
    }
    return true;
  }
  bool close() {
    ++at_;
    if (open_.back() == '{') {
      handler_.end_object();
    } else {
      handler_.end_array();
    }
    open_.pop_back();
    is_first_ = false;
    return true;
  }
  /// Past the comma; none is before the first.
  bool comma(char& c) {
    if (is_first_) {
      is_first_ = false;
      return true;
    }
    if (c != ',') return false;
    ++at_;
    c = next();
    return true;
  }

  bool member() {
    char c = next();
    if (c == '}') return close();
    if (!comma(c) || c != '"') return false;
    std::string_view name;
    if (!quoted(name)) return false;
    handler_.key(name);
    if (next() != ':') return false;
    ++at_;
    return value(next());
  }
  bool element() {
    char c = next();
    if (c == ']') return close();
    return comma(c) && value(c);
  }
  bool value(char c) {
    if (c == '"') {
      std::string_view text;
      if (!quoted(text)) return false;
      handler_.text(text);
      return true;
    }
    if (c == '{' || c == '[') return open(c);
    if (c == 't') return word("true");
    if (c == 'f') return word("false");
    if (c == 'n') return word("null");
    return number();
  }

  bool word(std::string_view expected) {
    for (const char c : expected) {
      if (!more() || *at_ != c) return false;
      ++at_;
    }
    handler_.word();
    return true;
  }

  /// Bytes of eight that end a plain text, as their upper bits: quotes, backslashes, control
  /// characters, and what is not ASCII.
  static std::uint64_t special(std::uint64_t bytes) {
    constexpr std::uint64_t kOnes = 0x0101010101010101, kHigh = 0x8080808080808080;
    const auto zero_in = [&](std::uint64_t x) { return (x - kOnes) & ~x; };
    const std::uint64_t quotes = zero_in(bytes ^ (kOnes * '"'));
    const std::uint64_t slashes = zero_in(bytes ^ (kOnes * '\\'));
    const std::uint64_t controls = bytes - kOnes * 0x20;
    return (quotes | slashes | controls | bytes) & kHigh;
  }

  /// What stands between quotes.
  bool quoted(std::string_view& text) {
    const char* from = ++at_;
    bool has_escapes = false, is_ascii = true;
    for (;;) {
      while (end_ - at_ >= 8) {
        std::uint64_t bytes = 0;
        std::memcpy(&bytes, at_, sizeof bytes);
        const std::uint64_t found = special(bytes);
        if (found == 0) {
          at_ += 8;
          continue;
        }
        if constexpr (std::endian::native == std::endian::little) {
          at_ += std::countr_zero(found) / 8;
        }
        break;
      }
      if (at_ == end_ && !refill(from)) return false;
      const auto c = static_cast<unsigned char>(*at_);
      if (c == '"') break;
      if (c < 0x20) return false;
      is_ascii = is_ascii && c < 0x80;
      ++at_;
      if (c == '\\') {
        has_escapes = true;
        if (at_ == end_ && !refill(from)) return false;
        ++at_;  // whatever it is, it does not end the text
      }
    }
    text = {from, static_cast<std::size_t>(at_ - from)};
    ++at_;
    if (text.size() > longest_ || (!is_ascii && !is_utf8(text))) return false;
    if (!has_escapes) return true;
    if (!unescape_json(text, unescaped_)) return false;
    text = unescaped_;
    return true;
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  /// All of the number is in the buffer then.
  bool gather_number(std::string_view& text) {
    const char* from = at_;
    for (;; ++at_) {
      if (at_ == end_ && !refill(from)) break;
      const char c = *at_;
      if (!is_digit(c) && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E') break;
    }
    text = {from, static_cast<std::size_t>(at_ - from)};
    return !text.empty();
  }
  bool number() {
    std::string_view text;
    if (!gather_number(text)) return false;
    std::size_t i = text.front() == '-' ? 1 : 0;
    const auto digits = [&] {
      const std::size_t begin = i;
      while (i < text.size() && is_digit(text[i])) ++i;
      return i - begin;
    };
    const bool leads_with_zero = i < text.size() && text[i] == '0';
    const std::size_t whole = digits();
    constexpr std::size_t kNeverOverflows = 300;
    if (whole == 0 || whole > kNeverOverflows || (leads_with_zero && whole > 1)) return false;
    if (i == text.size()) {
      integer(text);
      return true;
    }
    if (text[i] == '.') {
      ++i;
      if (digits() == 0) return false;
    }
    if (i < text.size()) {
      if (text[i] != 'e' && text[i] != 'E') return false;
      ++i;
      if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
      if (digits() == 0 || i < text.size() || !is_finite(text)) return false;
    }
    handler_.fraction(text);
    return true;
  }
  /// One beyond 64 bits is a fraction; one beyond 63 the largest of these.
  void integer(std::string_view text) {
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const char* const end = text.data() + text.size();
    std::int64_t value = 0;
    bool fits = false;
    if (text.front() == '-') {
      fits = std::from_chars(text.data(), end, value).ec == std::errc{};
    } else {
      std::uint64_t size = 0;
      fits = std::from_chars(text.data(), end, size).ec == std::errc{};
      value = static_cast<std::int64_t>(std::min(size, kMost));
    }
    if (fits) {
      handler_.integer(value, text);
    } else {
      handler_.fraction(text);
    }
  }
  static bool is_finite(std::string_view text) {
    return std::isfinite(std::strtod(std::string{text}.c_str(), nullptr));
  }

  std::streambuf& source_;
  std::size_t longest_;
  Handler& handler_;
  std::vector<char> buffer_;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  std::vector<char> open_;  ///< brackets
  bool is_first_ = false;   ///< no member or element of the innermost one has come yet
  std::string unescaped_;
};

}  // namespace foretrace
