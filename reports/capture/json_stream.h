// The tokens of a JSON text that comes in pieces, for traces of hundreds of megabytes: the calls
// that nlohmann's sax_parse makes, in a third of its time. It says of what is no JSON no more than
// that; sax_parse says why.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace foretrace::capture {

/// Fills `into` with what comes next: how many bytes; 0 at the end.
using ReadSome = std::function<std::size_t(char* into, std::size_t size)>;

template <class Handler>
class JsonStream {
 public:
  JsonStream(Handler& handler, ReadSome read)
      : handler_{handler}, read_{std::move(read)}, buffer_(kBuffer) {}

  /// False: this is no whole JSON text.
  bool parse() {
    State state = State::Value;
    while (true) {
      const int c = next_visible();
      if (state == State::AfterValue) {
        if (open_.empty()) return c == kEnd;
        if (c == ',') {
          ++at_;
          state = open_.back() == '[' ? State::Value : State::Key;
        } else if (!close(c)) {
          return false;
        }
        continue;
      }
      const bool may_close = state == State::FirstValue || state == State::FirstKey;
      if (may_close && (c == ']' || c == '}')) {
        if (!close(c)) return false;
        state = State::AfterValue;
      } else if (state == State::FirstKey || state == State::Key) {
        if (!read_key(c)) return false;
        state = State::Value;
      } else if (c == '{' || c == '[') {
        ++at_;
        open_.push_back(static_cast<char>(c));
        constexpr auto kUnknown = static_cast<std::size_t>(-1);
        c == '[' ? handler_.start_array(kUnknown) : handler_.start_object(kUnknown);
        state = c == '[' ? State::FirstValue : State::FirstKey;
      } else {
        if (!read_plain(c)) return false;
        state = State::AfterValue;
      }
    }
  }

 private:
  enum class State : std::uint8_t { Value, FirstValue, Key, FirstKey, AfterValue };
  static constexpr int kEnd = -1;
  static constexpr std::size_t kBuffer = std::size_t{1} << 16;

  /// Without taking it.
  int peek() {
    if (at_ == end_) {
      const std::size_t got = read_(buffer_.data(), buffer_.size());
      at_ = buffer_.data();
      end_ = at_ + got;
      if (got == 0) return kEnd;
    }
    return static_cast<unsigned char>(*at_);
  }
  int take() {
    const int c = peek();
    if (c != kEnd) ++at_;
    return c;
  }
  int next_visible() {
    while (true) {
      const int c = peek();
      if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return c;
      ++at_;
    }
  }

  bool close(int c) {
    if (c != (open_.back() == '[' ? ']' : '}')) return false;
    ++at_;
    open_.pop_back();
    c == ']' ? handler_.end_array() : handler_.end_object();
    return true;
  }

  bool read_key(int c) {
    if (c != '"' || !read_string()) return false;
    handler_.key(text_);
    if (next_visible() != ':') return false;
    ++at_;
    return true;
  }

  bool read_plain(int c) {
    switch (c) {
      case '"':
        return read_string() && handler_.string(text_);
      case 't':
        return read_word("true") && handler_.boolean(true);
      case 'f':
        return read_word("false") && handler_.boolean(false);
      case 'n':
        return read_word("null") && handler_.null();
      default:
        return read_number();
    }
  }

  bool read_word(const char* word) {
    for (; *word != 0; ++word) {
      if (take() != *word) return false;
    }
    return true;
  }

  /// Characters of strings that stand for themselves, one byte each.
  static constexpr std::array<bool, 256> kPlain = [] {
    std::array<bool, 256> plain{};
    for (std::size_t c = 0x20; c < 0x80; ++c) plain[c] = c != '"' && c != '\\';
    return plain;
  }();

  /// From its quote on: text_.
  bool read_string() {
    ++at_;
    text_.clear();
    while (true) {
      const char* const begin = at_;
      while (at_ != end_ && kPlain[static_cast<unsigned char>(*at_)]) ++at_;
      text_.append(begin, at_);
      if (at_ == end_ && peek() != kEnd) continue;
      const int c = take();
      if (c == '"') return true;
      if (c == '\\' ? !read_escape() : !read_wide(c)) return false;
    }
  }

  bool read_escape() {
    constexpr std::pair<char, char> kShort[] = {{'"', '"'},  {'\\', '\\'}, {'/', '/'},
                                                {'b', '\b'}, {'f', '\f'},  {'n', '\n'},
                                                {'r', '\r'}, {'t', '\t'}};
    const int c = take();
    for (const auto& [written, meant] : kShort) {
      if (c == written) {
        text_ += meant;
        return true;
      }
    }
    return c == 'u' && read_code_point();
  }

  /// Four hexadecimal digits; -1: they are none.
  int read_hex() {
    int value = 0;
    for (int digit = 0; digit < 4; ++digit) {
      const int c = take();
      const int of = c >= '0' && c <= '9'   ? c - '0'
                     : c >= 'a' && c <= 'f' ? c - 'a' + 10
                     : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                            : -1;
      if (of < 0) return -1;
      value = 16 * value + of;
    }
    return value;
  }

  bool read_code_point() {
    int code = read_hex();
    if (code < 0 || (code >= 0xdc00 && code < 0xe000)) return false;
    if (code >= 0xd800 && code < 0xdc00) {
      if (take() != '\\' || take() != 'u') return false;
      const int low = read_hex();
      if (low < 0xdc00 || low >= 0xe000) return false;
      code = 0x10000 + (code - 0xd800) * 0x400 + (low - 0xdc00);
    }
    const auto add = [this](int byte) { text_ += static_cast<char>(byte); };
    if (code < 0x80) {
      add(code);
    } else if (code < 0x800) {
      add(0xc0 | code >> 6);
      add(0x80 | (code & 0x3f));
    } else {
      if (code < 0x10000) {
        add(0xe0 | code >> 12);
      } else {
        add(0xf0 | code >> 18);
        add(0x80 | (code >> 12 & 0x3f));
      }
      add(0x80 | (code >> 6 & 0x3f));
      add(0x80 | (code & 0x3f));
    }
    return true;
  }

  /// A character of several bytes in UTF-8 that begins with `first`.
  bool read_wide(int first) {
    if (first < 0xc2 || first > 0xf4) return false;  // control characters and the text's end, too
    const int more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    text_ += static_cast<char>(first);
    for (int i = 0; i < more; ++i) {
      const int low = i > 0 ? 0x80 : first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
      const int high = i > 0 ? 0xbf : first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
      const int c = take();
      if (c < low || c > high) return false;
      text_ += static_cast<char>(c);
    }
    return true;
  }

  bool read_digits() {
    const std::size_t before = text_.size();
    for (int c = peek(); c >= '0' && c <= '9'; c = peek()) {
      text_ += static_cast<char>(c);
      ++at_;
    }
    return text_.size() > before;
  }
  bool read_one_of(int one, int other) {
    const int c = peek();
    if (c != one && c != other) return false;
    text_ += static_cast<char>(take());
    return true;
  }

  bool read_number() {
    text_.clear();
    const bool is_negative = read_one_of('-', '-');
    const std::size_t begin = text_.size();
    if (!read_digits() || (text_[begin] == '0' && text_.size() > begin + 1)) return false;
    bool is_whole = true;
    if (read_one_of('.', '.')) {
      is_whole = false;
      if (!read_digits()) return false;
    }
    if (read_one_of('e', 'E')) {
      is_whole = false;
      read_one_of('+', '-');
      if (!read_digits()) return false;
    }
    const char* const last = text_.data() + text_.size();
    std::int64_t number = 0;
    std::uint64_t natural = 0;
    if (is_whole && is_negative && std::from_chars(text_.data(), last, number).ec == std::errc{}) {
      return handler_.number_integer(number);
    }
    if (is_whole && !is_negative &&
        std::from_chars(text_.data(), last, natural).ec == std::errc{}) {
      return handler_.number_unsigned(natural);
    }
    const double value = std::strtod(text_.c_str(), nullptr);
    return std::isfinite(value) && handler_.number_float(value, text_);
  }

  Handler& handler_;
  ReadSome read_;
  std::vector<char> buffer_;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  std::vector<char> open_;  ///< '[' and '{'
  std::string text_;
};

}  // namespace foretrace::capture
