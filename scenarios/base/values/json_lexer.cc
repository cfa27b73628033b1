#include "scenarios/base/values/json_lexer.h"

namespace foretrace {
namespace {

/// Four digits; -1: they are none.
int hex_of(std::string_view digits) {
  int value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  const bool is_whole = error == std::errc{} && end == digits.data() + digits.size();
  return is_whole && digits.size() == 4 && value >= 0 && digits[0] != '-' ? value : -1;
}

void append_utf8(std::string& text, std::uint32_t point) {
  const auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (point < 0x80) return add(point);
  if (point < 0x800) {
    add(0xc0 | point >> 6);
  } else if (point < 0x10000) {
    add(0xe0 | point >> 12);
    add(0x80 | (point >> 6 & 0x3f));
  } else {
    add(0xf0 | point >> 18);
    add(0x80 | (point >> 12 & 0x3f));
    add(0x80 | (point >> 6 & 0x3f));
  }
  add(0x80 | (point & 0x3f));
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size();) {
    const auto byte = [&](std::size_t k) {
      return i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U;
    };
    const unsigned first = byte(0);
    if (first < 0x80) {
      ++i;
      continue;
    }
    const std::size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (first < 0xc2 || first > 0xf4) return false;
    // Overlong forms, surrogates, and what is beyond Unicode: the second byte tells.
    const unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (byte(1) < low || byte(1) > high) return false;
    for (std::size_t k = 2; k < size; ++k) {
      if (byte(k) < 0x80 || byte(k) > 0xbf) return false;
    }
    i += size;
  }
  return true;
}

bool unescape_json(std::string_view raw, std::string& text) {
  constexpr std::string_view kLetters = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
  text.clear();
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      text += raw[i];
      continue;
    }
    if (++i == raw.size()) return false;
    if (raw[i] != 'u') {
      const std::size_t which = kLetters.find(raw[i]);
      if (which == std::string_view::npos) return false;
      text += kMeant[which];
      continue;
    }
    int point = hex_of(raw.substr(i + 1, 4));
    if (point < 0 || (point >= 0xdc00 && point <= 0xdfff)) return false;
    i += 4;
    if (point >= 0xd800 && point < 0xdc00) {  // the first of two halves
      const bool is_followed = raw.substr(i + 1, 2) == "\\u";
      const int other = is_followed ? hex_of(raw.substr(i + 3, 4)) : -1;
      if (other < 0xdc00 || other > 0xdfff) return false;
      point = 0x10000 + ((point - 0xd800) << 10) + (other - 0xdc00);
      i += 6;
    }
    append_utf8(text, static_cast<std::uint32_t>(point));
  }
  return true;
}

}  // namespace foretrace
