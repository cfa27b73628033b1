// Builds the tree of one YAML document from libyaml's events. For parse_yaml().
#pragma once

#include <yaml.h>

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scenarios/base/text/yaml_reader.h"

namespace foretrace {

/// A node without contents where libyaml says it begins.
YamlNode node_at(const yaml_mark_t& mark, YamlNode::Kind kind);

class TreeBuilder {
 public:
  // What walks the tree recurses for each level; no scenario nests half as deep.
  static constexpr std::size_t kDeepestNesting = 100;

  explicit TreeBuilder(Problems& problems) : problems_{problems} {}

  void take(const yaml_event_t& event);
  bool is_too_deep() const { return open_.size() > kDeepestNesting; }
  YamlNode take_root() { return std::move(root_); }

 private:
  struct Open {
    YamlNode node;
    YamlNode key;  ///< of a map: the key whose value comes next
    bool has_key = false;
    /// The line of each key; empty while there are so few that all entries are looked through.
    std::unordered_map<std::string, int> keys;
  };

  void refuse_extras(const YamlNode& node, const yaml_char_t* anchor, const yaml_char_t* tag);
  void add(YamlNode node);
  /// A key that is refused loses its value too: has_key without a Scalar.
  void take_key(Open& parent, YamlNode key);
  /// The line in which a map has this key; 0: it has not.
  static int line_of_key(Open& map, const std::string& key);

  Problems& problems_;
  std::vector<Open> open_;
  YamlNode root_;
};

}  // namespace foretrace
