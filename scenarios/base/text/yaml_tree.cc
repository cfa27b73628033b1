#include "scenarios/base/text/yaml_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace foretrace {
namespace {

std::string_view text_of(const yaml_char_t* text, std::size_t length) {
  return {reinterpret_cast<const char*>(text), length};  // NOLINT: libyaml's bytes
}

bool is_null(std::string_view word) {
  constexpr std::array<std::string_view, 5> kWords{"", "~", "null", "Null", "NULL"};
  return std::ranges::find(kWords, word) != kWords.end();
}

}  // namespace

YamlNode node_at(const yaml_mark_t& mark, YamlNode::Kind kind) {
  YamlNode node;
  node.kind = kind;
  node.line = static_cast<int>(mark.line) + 1;
  node.column = static_cast<int>(mark.column) + 1;
  return node;
}

void TreeBuilder::take(const yaml_event_t& event) {
  const yaml_mark_t& mark = event.start_mark;
  switch (event.type) {
    case YAML_ALIAS_EVENT: {
      YamlNode node = node_at(mark, YamlNode::Kind::Null);
      problems_.error(node, "aliases (*name) are not part of the language",
                      "write the value out, or use a parameter: $name");
      return add(std::move(node));
    }
    case YAML_SCALAR_EVENT: {
      const auto& scalar = event.data.scalar;
      YamlNode node = node_at(mark, YamlNode::Kind::Scalar);
      refuse_extras(node, scalar.anchor, scalar.tag);
      node.text = text_of(scalar.value, scalar.length);
      node.quoted = scalar.style != YAML_PLAIN_SCALAR_STYLE;
      if (!node.quoted && scalar.tag == nullptr && is_null(node.text)) {
        node.kind = YamlNode::Kind::Null;
        node.text.clear();
      }
      return add(std::move(node));
    }
    case YAML_SEQUENCE_START_EVENT: {
      const auto& start = event.data.sequence_start;
      open_.push_back({node_at(mark, YamlNode::Kind::Sequence), {}, false, {}});
      return refuse_extras(open_.back().node, start.anchor, start.tag);
    }
    case YAML_MAPPING_START_EVENT: {
      const auto& start = event.data.mapping_start;
      open_.push_back({node_at(mark, YamlNode::Kind::Map), {}, false, {}});
      return refuse_extras(open_.back().node, start.anchor, start.tag);
    }
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: {
      YamlNode node = std::move(open_.back().node);
      open_.pop_back();
      return add(std::move(node));
    }
    default:
      return;
  }
}

void TreeBuilder::refuse_extras(const YamlNode& node, const yaml_char_t* anchor,
                                const yaml_char_t* tag) {
  if (anchor != nullptr) {
    problems_.error(node, "anchors (&name) are not part of the language",
                    "write the value out, or use a parameter: $name");
  }
  if (tag != nullptr) problems_.error(node, "tags (!name) are not part of the language");
}

void TreeBuilder::add(YamlNode node) {
  if (open_.empty()) {
    root_ = std::move(node);
    return;
  }
  Open& parent = open_.back();
  if (parent.node.kind == YamlNode::Kind::Sequence) {
    parent.node.items.push_back(std::move(node));
  } else if (!parent.has_key) {
    take_key(parent, std::move(node));
  } else {
    parent.has_key = false;
    if (parent.key.kind == YamlNode::Kind::Scalar) {
      parent.node.entries.push_back({std::move(parent.key), std::move(node)});
    }
  }
}

int TreeBuilder::line_of_key(Open& map, const std::string& key) {
  constexpr std::size_t kFew = 16;
  const std::vector<YamlEntry>& entries = map.node.entries;
  if (entries.size() < kFew) {
    const auto at = std::ranges::find(
        entries, key, [](const YamlEntry& entry) -> const std::string& { return entry.key.text; });
    return at == entries.end() ? 0 : at->key.line;
  }
  for (std::size_t i = map.keys.size(); i < entries.size(); ++i) {
    map.keys.emplace(entries[i].key.text, entries[i].key.line);
  }
  const auto at = map.keys.find(key);
  return at == map.keys.end() ? 0 : at->second;
}

void TreeBuilder::take_key(Open& parent, YamlNode key) {
  parent.has_key = true;
  if (key.kind != YamlNode::Kind::Scalar) {
    problems_.error(key, "a key must be a word");
    key.kind = YamlNode::Kind::Null;
  } else if (const int first = line_of_key(parent, key.text); first != 0) {
    // "{src: x(0, 0), dst: y(0, 0)}" has the keys src, "0)", dst and "0)" again.
    const bool is_index = key.text.ends_with(')') && key.text.find('(') == std::string::npos;
    problems_.error(key, fmt::format("duplicate key '{}'", key.text),
                    is_index ? "inside of {...} a comma ends the value: write 'x(0, 1)' in quotes"
                             : fmt::format("first given in line {}", first));
    key.kind = YamlNode::Kind::Null;
  }
  parent.key = std::move(key);
}

}  // namespace foretrace
