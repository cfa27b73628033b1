// Strict YAML: text to a tree that knows the position of every key and value. Duplicate keys,
// anchors, aliases, tags and further documents are refused, and a map that was read reports every
// key that nobody asked for. Nothing of yaml-cpp shows outside.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/text/diagnostic.h"

namespace foretrace {

struct YamlEntry;

struct YamlNode {
  enum class Kind : std::uint8_t { Null, Scalar, Sequence, Map };
  Kind kind = Kind::Null;
  bool quoted = false;  ///< Scalar: its text begins one column later than the node
  int line{};           ///< 1-based, of the first character
  int column{};
  std::string text;                ///< Scalar
  std::vector<YamlNode> items;     ///< Sequence
  std::vector<YamlEntry> entries;  ///< Map, in the order of the file
};
struct YamlEntry {
  YamlNode key;  ///< always a Scalar
  YamlNode value;
};

/// Collects what is wrong with one file.
class Problems {
 public:
  explicit Problems(std::string file) : file_{std::move(file)} {}

  /// `offset` counts characters from the beginning of the node's text.
  void error(const YamlNode& at, std::string message, std::string hint = {},
             std::size_t offset = 0);
  void warning(const YamlNode& at, std::string message, std::string hint = {});
  void add(int line, int column, Severity severity, std::string message, std::string hint = {});

  std::size_t error_count() const { return error_count_; }
  std::size_t count() const { return all_.size(); }  ///< errors and warnings
  /// Further ones are counted only: nobody reads the thousandth.
  bool is_full() const { return all_.size() >= kMostKept; }
  const std::string& file() const { return file_; }
  /// In the order of the file; leaves this empty.
  Diagnostics take();

 private:
  static constexpr std::size_t kMostKept = 1000;

  std::string file_;
  Diagnostics all_;
  std::size_t error_count_ = 0;
};

/// The document's tree; Null when there is none. What is wrong goes to `problems`.
YamlNode parse_yaml(std::string_view text, Problems& problems);

/// Walks one map once: every key it is asked for is known, finish() reports all others.
class MapReader {
 public:
  /// `what` completes "unknown key 'x' in ...": "a stream". Anything but a map is an error here
  /// and reads as an empty one.
  MapReader(const YamlNode& node, std::string what, Problems& problems);

  /// Null when the key is absent or has no value.
  const YamlNode* optional(std::string_view key);
  /// The same, and an error when there is none.
  const YamlNode* required(std::string_view key);
  /// Whether the key is there; does not make it known.
  bool has(std::string_view key) const;
  void finish();

  const YamlNode& node() const { return node_; }
  Problems& problems() { return problems_; }

 private:
  const YamlNode& node_;
  std::string what_;
  Problems& problems_;
  std::vector<std::string> known_;
};

}  // namespace foretrace
