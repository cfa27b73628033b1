#include "scenarios/text/yaml_reader.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <boost/locale/utf.hpp>
#include <istream>
#include <limits>
#include <streambuf>
#include <unordered_map>
#include <utility>

#include "scenarios/text/text_file.h"

namespace foretrace {
namespace {

// yaml-cpp recurses for each level, and so do we; no scenario nests half as deep.
constexpr std::size_t kDeepestNesting = 100;

struct NestedTooDeeply {
  YAML::Mark mark;
};

/// Builds the tree from yaml-cpp's events, which carry what its Node loses: tags and anchors.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(Problems& problems) : problems_{problems} {}

  YamlNode take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add_leaf(node_at(mark, "", anchor, YamlNode::Kind::Null));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    YamlNode node = node_at(mark, "", 0, YamlNode::Kind::Null);
    problems_.error(node, "aliases (*name) are not part of the language",
                    "write the value out, or use a parameter: $name");
    add_leaf(std::move(node));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode node = node_at(mark, tag, anchor, YamlNode::Kind::Scalar);
    node.text = value;
    node.quoted = tag == "!";
    add_leaf(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, node_at(mark, tag, anchor, YamlNode::Kind::Sequence));
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, node_at(mark, tag, anchor, YamlNode::Kind::Map));
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    YamlNode node;
    YamlNode key;  // of a map: the key whose value comes next
    bool has_key = false;
    std::unordered_map<std::string, int> keys;  // and the line of each
  };

  YamlNode node_at(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                   YamlNode::Kind kind) {
    YamlNode node;
    node.kind = kind;
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    if (anchor != 0) {
      problems_.error(node, "anchors (&name) are not part of the language",
                      "write the value out, or use a parameter: $name");
    }
    if (!tag.empty() && tag != "?" && tag != "!") {
      problems_.error(node, "tags (!name) are not part of the language");
    }
    return node;
  }

  void open(const YAML::Mark& mark, YamlNode node) {
    if (open_.size() >= kDeepestNesting) throw NestedTooDeeply{mark};
    open_.push_back({std::move(node), {}, false, {}});
  }
  void close() {
    YamlNode node = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(node));
  }
  void add_leaf(YamlNode node) { add(std::move(node)); }

  void add(YamlNode node) {
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

  /// A key that is refused loses its value too: has_key without a Scalar.
  void take_key(Open& parent, YamlNode key) {
    parent.has_key = true;
    if (key.kind != YamlNode::Kind::Scalar) {
      problems_.error(key, "a key must be a word");
      key.kind = YamlNode::Kind::Null;
    } else if (const auto [first, is_new] = parent.keys.emplace(key.text, key.line); !is_new) {
      problems_.error(key, fmt::format("duplicate key '{}'", key.text),
                      fmt::format("first given in line {}", first->second));
      key.kind = YamlNode::Kind::Null;
    }
    parent.key = std::move(key);
  }

  Problems& problems_;
  std::vector<Open> open_;
  YamlNode root_;
};

/// Reads the text where it lies.
class ViewBuffer : public std::streambuf {
 public:
  explicit ViewBuffer(std::string_view text) {
    char* begin = const_cast<char*>(text.data());  // NOLINT: streambuf's type; only read
    setg(begin, begin, begin + text.size());
  }
};

void add_at_offset(std::string_view text, std::size_t offset, Problems& problems,
                   std::string message) {
  const auto before = text.substr(0, offset);
  const auto line = static_cast<int>(std::ranges::count(before, '\n')) + 1;
  const auto line_begin = before.find_last_of('\n') + 1;  // npos + 1 == 0
  problems.add(line, static_cast<int>(offset - line_begin) + 1, Severity::Error, std::move(message),
               "a scenario is a UTF-8 text file");
}

/// yaml-cpp reads anything as text; a binary file must not be explained key by key.
bool is_text(std::string_view text, Problems& problems) {
  using Utf8 = boost::locale::utf::utf_traits<char>;
  for (auto at = text.begin(); at != text.end();) {
    const auto here = static_cast<std::size_t>(at - text.begin());
    if (static_cast<unsigned char>(*at) < 0x80) {  // most of every file
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

}  // namespace

void Problems::error(const YamlNode& at, std::string message, std::string hint,
                     std::size_t offset) {
  const int within = at.is_filled ? 0 : static_cast<int>(offset);
  add(at, within + (at.quoted && within > 0 ? 1 : 0), Severity::Error, std::move(message),
      std::move(hint));
}

void Problems::warning(const YamlNode& at, std::string message, std::string hint) {
  add(at, 0, Severity::Warning, std::move(message), std::move(hint));
}

void Problems::add(const YamlNode& at, int offset, Severity severity, std::string message,
                   std::string hint) {
  const std::size_t before = all_.size();
  add(at.line, at.column + offset, severity, std::move(message), std::move(hint));
  if (at.source == 0 || all_.size() == before) return;
  Diagnostic& added = all_.back();
  added.at.file = file_of(at);
  added.line_text = line_of(*sources_[at.source - 1U].text, at.line);
  for (std::uint16_t source = at.source; source != 0;) {
    added.included_from.push_back(sources_[source - 1U].included_at);
    source = sources_[source - 1U].included_by;
  }
}

std::uint16_t Problems::add_source(std::string file, std::shared_ptr<const std::string> text,
                                   const YamlNode& include) {
  if (sources_.size() == std::numeric_limits<std::uint16_t>::max()) return 0;
  sources_.push_back({std::move(file),
                      std::move(text),
                      {file_of(include), include.line, include.column},
                      include.source});
  return static_cast<std::uint16_t>(sources_.size());
}

const std::string& Problems::file_of(const YamlNode& node) const {
  return node.source == 0 ? file_ : sources_[node.source - 1U].file;
}

bool Problems::is_within(const YamlNode& node, const std::string& file) const {
  for (std::uint16_t source = node.source; source != 0;) {
    if (sources_[source - 1U].file == file) return true;
    source = sources_[source - 1U].included_by;
  }
  return file == file_;
}

int Problems::depth_of(const YamlNode& node) const {
  int depth = 0;
  for (std::uint16_t source = node.source; source != 0; ++depth) {
    source = sources_[source - 1U].included_by;
  }
  return depth;
}

void Problems::add(int line, int column, Severity severity, std::string message, std::string hint) {
  if (severity == Severity::Error) ++error_count_;
  if (is_full()) return;
  all_.push_back({{file_, line, column}, std::move(message), std::move(hint), severity});
}

Diagnostics Problems::take() {
  std::ranges::stable_sort(all_, {}, [](const Diagnostic& d) {
    return std::pair{outermost(d).line, outermost(d).column};
  });
  // Text that is read once for each group of processes says the same again.
  const auto says_the_same = [](const Diagnostic& a, const Diagnostic& b) {
    return a.at.line > 0 && a.at.line == b.at.line && a.at.column == b.at.column &&
           a.at.file == b.at.file && a.message == b.message;
  };
  all_.erase(std::unique(all_.begin(), all_.end(), says_the_same), all_.end());
  return std::exchange(all_, {});
}

YamlNode parse_yaml(std::string_view text, Problems& problems) {
  if (text.size() > kLargestText) {
    problems.add(0, 0, Severity::Error,
                 fmt::format("larger than {} MiB: not a scenario", kLargestText >> 20));
    return {};
  }
  if (!is_text(text, problems)) return {};
  TreeBuilder builder{problems};
  try {
    ViewBuffer buffer{text};
    std::istream stream{&buffer};
    YAML::Parser parser{stream};
    parser.HandleNextDocument(builder);
    YamlNode root = builder.take_root();
    TreeBuilder second{problems};
    if (parser.HandleNextDocument(second)) {
      problems.error(second.take_root(),
                     "a scenario is one YAML document, and this starts another");
    }
    return root;
  } catch (const NestedTooDeeply& deep) {
    problems.add(deep.mark.line + 1, deep.mark.column + 1, Severity::Error,
                 fmt::format("nested more than {} levels deep", kDeepestNesting));
  } catch (const YAML::Exception& error) {
    problems.add(error.mark.line + 1, error.mark.column + 1, Severity::Error,
                 fmt::format("not valid YAML: {}", error.msg));
  }
  return {};
}

MapReader::MapReader(const YamlNode& node, std::string what, Problems& problems)
    : node_{node}, what_{std::move(what)}, problems_{problems} {
  if (node.kind != YamlNode::Kind::Map) {
    problems_.error(node, fmt::format("{} is a map: {{key: value, ...}}", what_));
  }
}

const YamlNode* MapReader::optional(std::string_view key) {
  known_.emplace_back(key);
  for (const YamlEntry& entry : node_.entries) {
    if (entry.key.text != key) continue;
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
  return std::ranges::any_of(node_.entries,
                             [key](const YamlEntry& entry) { return entry.key.text == key; });
}

void MapReader::finish() {
  for (const YamlEntry& entry : node_.entries) {
    if (std::ranges::find(known_, entry.key.text) != known_.end()) continue;
    if (entry.key.text.ends_with(')') || entry.key.text.find(") ") != std::string::npos) {
      problems_.error(entry.key, fmt::format("'{}' is no key", entry.key.text),
                      "inside of {...} a comma ends the value: write it in quotes");
      continue;
    }
    problems_.error(entry.key, fmt::format("unknown key '{}' in {}", entry.key.text, what_),
                    problems_.is_full() ? "" : suggest(entry.key.text, known_));
  }
}

}  // namespace foretrace
