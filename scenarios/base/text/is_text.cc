#include "scenarios/base/text/is_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/locale/utf.hpp>
#include <cstdint>
#include <cstring>
#include <utility>

namespace foretrace {

void add_at_offset(std::string_view text, std::size_t offset, Problems& problems,
                   std::string message) {
  const auto before = text.substr(0, offset);
  const auto line = static_cast<int>(std::ranges::count(before, '\n')) + 1;
  const auto line_begin = before.find_last_of('\n') + 1;  // npos + 1 == 0
  problems.add(line, static_cast<int>(offset - line_begin) + 1, Severity::Error, std::move(message),
               "a scenario is a UTF-8 text file");
}

namespace {

/// Whether the next eight bytes are ASCII from the space on. Most of every file is.
bool are_plain(const char* bytes) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  std::uint64_t eight = 0;
  std::memcpy(&eight, bytes, sizeof eight);
  // With the highest bits set no byte borrows from the next one.
  return ((eight | ~(((eight | kOnes * 0x80) - kOnes * 0x20))) & (kOnes * 0x80)) == 0;
}

}  // namespace

bool is_text(std::string_view text, Problems& problems) {
  using Utf8 = boost::locale::utf::utf_traits<char>;
  for (auto at = text.begin(); at != text.end();) {
    while (text.end() - at >= 8 && are_plain(&*at)) at += 8;
    if (at == text.end()) break;
    const auto here = static_cast<std::size_t>(at - text.begin());
    if (static_cast<unsigned char>(*at) < 0x80) {
      const char c = *at++;
      if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t' || c == '\r') continue;
      add_at_offset(text, here, problems,
                    fmt::format("not a text file: byte 0x{:02x}", static_cast<unsigned>(c)));
      return false;
    }
    const auto code_point = Utf8::decode(at, text.end());
    if (code_point == boost::locale::utf::illegal || code_point == boost::locale::utf::incomplete) {
      add_at_offset(text, here, problems, "not a text file: invalid UTF-8");
      return false;
    }
  }
  return true;
}

}  // namespace foretrace
