#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "scenarios/include/include.h"

namespace foretrace {
namespace {

bool is_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// "work", "64MiB", "$size": needs no parentheses within an expression.
bool is_one_word(std::string_view value) {
  return std::ranges::all_of(value, [](char c) { return is_of_name(c) || c == '.' || c == '$'; });
}

std::vector<std::string> names_of(const std::map<std::string, std::string>& with) {
  std::vector<std::string> names;
  for (const auto& [name, value] : with) names.push_back(name);
  return names;
}

void fill_text(YamlNode& node, const std::map<std::string, std::string>& with, Problems& problems) {
  const std::string_view text = node.text;
  std::string filled;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '$') {
      filled += text[at++];
      continue;
    }
    const std::size_t begin = at + 1;
    std::size_t end = begin;
    while (end < text.size() && is_of_name(text[end])) ++end;
    const std::string name{text.substr(begin, end - begin)};
    const auto value = with.find(name);
    if (value == with.end()) {
      problems.error(
          node, fmt::format("the part has no parameter '{}'", name),
          with.empty() ? "a part knows its own 'parameters' only" : suggest(name, names_of(with)),
          at);
      return;
    }
    const bool is_alone = begin == 1 && end == text.size();
    filled +=
        is_alone || is_one_word(value->second) ? value->second : fmt::format("({})", value->second);
    at = end;
  }
  node.text = std::move(filled);
  node.is_filled = true;
}

}  // namespace

void fill(YamlNode& node, const std::map<std::string, std::string>& with, Problems& problems) {
  if (node.text.find('$') != std::string::npos) fill_text(node, with, problems);
  for (YamlNode& item : node.items) fill(item, with, problems);
  for (YamlEntry& entry : node.entries) {
    fill(entry.key, with, problems);
    fill(entry.value, with, problems);
  }
}

}  // namespace foretrace
