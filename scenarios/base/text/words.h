// Words in the values of environment variables, as NCCL and CUDA take them apart, and in messages.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace foretrace {

inline std::string lower(std::string_view text) {
  std::string result{text};
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return result;
}

/// Pieces between `separator`, empty ones left out, as strtok does.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    if (!text.substr(0, at).empty()) parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

/// What a message quotes of a file: at most so many bytes, cut between characters.
inline std::string shortened(std::string_view text, std::size_t most = 60) {
  if (text.size() <= most) return std::string{text};
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0U) == 0x80U) --most;
  return std::string{text.substr(0, most)} + "...";
}

/// Without line ends and other control characters: a file's text makes up no line of its own.
/// YAML and terminals know more line ends than ASCII does: U+0085, U+2028 and U+2029.
inline std::string in_one_line(std::string text) {
  constexpr std::string_view kEnds[] = {"\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"};
  for (const std::string_view end : kEnds) {
    for (auto at = text.find(end); at != std::string::npos; at = text.find(end, at)) {
      text.replace(at, end.size(), " ");
    }
  }
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  }
  return text;
}

/// What a JSON library says, without its own name and number of the error, nor what it read last.
inline std::string json_reason(std::string_view what) {
  const auto tag = what.starts_with("[json.") ? what.find("] ") : std::string_view::npos;
  if (tag != std::string_view::npos) what.remove_prefix(tag + 2);
  return std::string{what.substr(0, what.find("; last read"))};
}

}  // namespace foretrace
