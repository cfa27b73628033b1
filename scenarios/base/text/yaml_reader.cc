#include "scenarios/base/text/yaml_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/base/text/text_file.h"

namespace foretrace {
namespace {

/// What was meant, or the keys that there are, and of very many the first.
std::string key_hint(std::string_view key, const std::vector<std::string_view>& asked_for) {
  std::vector<std::string> known;
  for (const std::string_view one : asked_for) {
    if (std::ranges::find(known, one) == known.end()) known.emplace_back(one);
  }
  const std::string hint = suggest(key, known);
  if (!hint.empty() || known.empty()) return hint;
  constexpr std::size_t kMost = 40;
  const std::size_t left_out = known.size() > kMost ? known.size() - kMost : 0;
  known.resize(known.size() - left_out);
  return fmt::format("known here: {}{}", fmt::join(known, ", "),
                     left_out == 0 ? "" : fmt::format(" and {} more", left_out));
}

}  // namespace

MapReader::MapReader(const YamlNode& node, std::string what, Problems& problems)
    : node_{node},
      what_{std::move(what)},
      problems_{problems},
      errors_before_{problems.error_count()} {
  if (node.kind != YamlNode::Kind::Map) {
    problems_.error(node, fmt::format("{} is a map: {{key: value, ...}}", what_));
  }
  constexpr std::size_t kFew = 16;  // found as fast one by one
  const std::size_t count = node.entries.size();
  if (count <= kFew) return;
  was_asked_.resize(count);
  places_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) places_.emplace(node.entries[i].key.text, i);
}

/// No entry before it has the key.
std::size_t MapReader::first_place(std::string_view key) const {
  if (places_.empty()) return 0;
  const auto found = places_.find(key);
  return found == places_.end() ? node_.entries.size() : found->second;
}

const YamlNode* MapReader::optional(std::string_view key) {
  known_.push_back(key);
  for (std::size_t i = first_place(key); i < node_.entries.size(); ++i) {
    const YamlEntry& entry = node_.entries[i];
    if (entry.key.text != key) continue;
    if (!was_asked_.empty()) was_asked_[i] = true;
    if (entry.value.kind != YamlNode::Kind::Null) return &entry.value;
    problems_.error(entry.key, fmt::format("'{}' has no value", key));
  }
  return nullptr;
}

const YamlNode* MapReader::required(std::string_view key) {
  const YamlNode* found = optional(key);
  if (found == nullptr && node_.kind == YamlNode::Kind::Map && !has(key)) {
    problems_.error(node_, fmt::format("{} needs '{}'", what_, key));
  }
  return found;
}

bool MapReader::has(std::string_view key) const {
  if (!places_.empty()) return places_.contains(key);
  return std::ranges::any_of(node_.entries,
                             [key](const YamlEntry& entry) { return entry.key.text == key; });
}

void MapReader::finish() {
  for (std::size_t i = 0; i < node_.entries.size(); ++i) {
    const YamlEntry& entry = node_.entries[i];
    if (!was_asked_.empty() && was_asked_[i]) continue;
    if (std::ranges::find(known_, entry.key.text) != known_.end()) continue;
    if (entry.key.text.ends_with(')') || entry.key.text.find(") ") != std::string::npos) {
      problems_.error(entry.key, fmt::format("'{}' is no key", entry.key.text),
                      "inside of {...} a comma ends the value: write it in quotes");
      continue;
    }
    problems_.error(entry.key, fmt::format("unknown key '{}' in {}", entry.key.text, what_),
                    problems_.is_full() ? "" : key_hint(entry.key.text, known_));
  }
}

}  // namespace foretrace
