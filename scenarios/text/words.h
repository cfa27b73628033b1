// Words in the values of environment variables, as NCCL and CUDA take them apart.
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

}  // namespace foretrace
