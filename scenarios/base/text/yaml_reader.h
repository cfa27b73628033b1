// Strict YAML: text to a tree that knows the position of every key and value. Duplicate keys,
// anchors, aliases, tags and further documents are refused, and a map that was read reports every
// key that nobody asked for. Nothing of libyaml shows outside.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scenarios/base/text/diagnostic.h"

namespace foretrace {

struct YamlEntry;

struct YamlNode {
  enum class Kind : std::uint8_t { Null, Scalar, Sequence, Map };
  Kind kind = Kind::Null;
  bool quoted = false;     ///< Scalar: its text begins one column later than the node
  bool is_filled = false;  ///< Scalar: its text is not the file's: parameters of a part are in it
  std::uint16_t source{};  ///< the file that it is from: Problems::add_source; 0 the file itself
  int line{};              ///< 1-based, of the first character
  int column{};
  int include_line{};  ///< of another file: the include in the file itself that brought it
  int include_column{};
  std::string text;                ///< Scalar
  std::vector<YamlNode> items;     ///< Sequence
  std::vector<YamlEntry> entries;  ///< Map, in the order of the file

  /// Line and column in the file itself.
  std::pair<int, int> place() const {
    return source == 0 ? std::pair{line, column} : std::pair{include_line, include_column};
  }
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
  /// `group`, a literal: Diagnostic's.
  void add(int line, int column, Severity severity, std::string message, std::string hint = {},
           std::string_view group = {});

  /// One that only follows from an error that was reported: counted, and not shown.
  void count_error() { ++error_count_; }

  /// A file that `include`, a node of the file itself or of an earlier source, brings in. Returns
  /// its number; 0 when there are too many.
  std::uint16_t add_source(std::string file, std::shared_ptr<const std::string> text,
                           const YamlNode& include);
  /// The file that a node is from, as diagnostics name it.
  const std::string& file_of(const YamlNode& node) const;
  /// Whether `file` includes the node, over any number of files.
  bool is_within(const YamlNode& node, const std::string& file) const;
  /// How many files are around the node's.
  int depth_of(const YamlNode& node) const;

  std::size_t error_count() const { return error_count_; }
  std::size_t count() const { return all_.size(); }  ///< errors and warnings
  /// Further ones are counted only: nobody reads the thousandth.
  bool is_full() const { return all_.size() >= kMostKept; }
  const std::string& file() const { return file_; }
  /// In the order of the file; leaves this empty.
  Diagnostics take();

 private:
  static constexpr std::size_t kMostKept = 1000;
  struct Source {
    std::string file;
    std::shared_ptr<const std::string> text;
    SourceSpot included_at;
    std::uint16_t included_by;  ///< its source
  };
  void add(const YamlNode& at, int offset, Severity severity, std::string message,
           std::string hint);

  std::string file_;
  std::vector<Source> sources_;  ///< source 1 first
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

  /// Null when the key is absent or has no value. The key's text, a literal, is kept.
  const YamlNode* optional(std::string_view key);
  /// The same, and an error when there is none.
  const YamlNode* required(std::string_view key);
  /// Whether the key is there; does not make it known.
  bool has(std::string_view key) const;
  /// Nothing was wrong since this began, with the map itself or in what was read of it.
  bool is_sound() const { return problems_.error_count() == errors_before_; }
  std::size_t errors_before() const { return errors_before_; }
  void finish();

  const YamlNode& node() const { return node_; }
  Problems& problems() { return problems_; }

 private:
  std::size_t first_place(std::string_view key) const;

  const YamlNode& node_;
  std::string what_;
  Problems& problems_;
  std::size_t errors_before_;
  std::vector<std::string_view> known_;
  // Of a map with more than a few entries only: where its keys stand, and which were asked for.
  std::unordered_map<std::string_view, std::size_t> places_;
  std::vector<bool> was_asked_;
};

}  // namespace foretrace
