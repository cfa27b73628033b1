#include <yaml-cpp/emitter.h>

#include <algorithm>

#include "scenarios/include/include.h"

namespace foretrace {
namespace {

bool has_list_of_maps(const YamlNode& node) {
  const auto is_map = [](const YamlNode& item) { return item.kind == YamlNode::Kind::Map; };
  return std::ranges::any_of(node.items, is_map) ||
         std::ranges::any_of(node.items, has_list_of_maps) ||
         std::ranges::any_of(node.entries,
                             [](const YamlEntry& e) { return has_list_of_maps(e.value); });
}

/// Lists of operations a line each, an operation and all small maps in one line.
void emit(YAML::Emitter& out, const YamlNode& node, int level, bool is_line = false) {
  const bool in_block =
      level == 0 || has_list_of_maps(node) ||
      (node.kind == YamlNode::Kind::Map && (level == 1 || (is_line && node.entries.size() == 1)));
  switch (node.kind) {
    case YamlNode::Kind::Null:
      out << YAML::Null;
      return;
    case YamlNode::Kind::Scalar:
      out << node.text;
      return;
    case YamlNode::Kind::Sequence:
      out << (in_block ? YAML::Block : YAML::Flow) << YAML::BeginSeq;
      for (const YamlNode& item : node.items) emit(out, item, level + 1, in_block);
      out << YAML::EndSeq;
      return;
    case YamlNode::Kind::Map:
      out << (in_block ? YAML::Block : YAML::Flow) << YAML::BeginMap;
      for (const YamlEntry& entry : node.entries) {
        out << YAML::Key << entry.key.text << YAML::Value;
        emit(out, entry.value, level + 1);
      }
      out << YAML::EndMap;
      return;
  }
}

}  // namespace

std::string yaml_text(const YamlNode& root) {
  YAML::Emitter out;
  emit(out, root, 0);
  return std::string{out.c_str()} + "\n";
}

}  // namespace foretrace
