#include "scenarios/text/plain_yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

namespace foretrace {
namespace {

/// A line's text without what is around it.
struct PlainLine {
  std::string_view text;
  int number = 0, column = 0;  ///< of its first character
};

YamlNode plain_node(YamlNode::Kind kind, int line, int column, std::string_view text = {}) {
  YamlNode node;
  node.kind = kind;
  node.line = line;
  node.column = column;
  node.text = text;
  return node;
}

std::string_view without_end(std::string_view text) {
  const std::size_t comment = text.find("  #");
  text = text.substr(0, comment);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::vector<PlainLine> lines_of(std::string_view text) {
  std::vector<PlainLine> lines;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    line = without_end(line.substr(indent));
    if (!line.empty() && line.front() != '#') {
      lines.push_back({line, number, static_cast<int>(indent) + 1});
    }
  }
  return lines;
}

/// A value within one line: {a: b, c: [d, e]}, or a word.
class Flow {
 public:
  Flow(std::string_view text, int line, int column) : text_{text}, line_{line}, column_{column} {}

  YamlNode value(std::string_view ends) {
    skip_spaces();
    if (take('{')) return map();
    if (take('[')) return sequence();
    return scalar(ends);
  }
  bool at_end() const { return at_ == text_.size(); }

 private:
  int here() const { return column_ + static_cast<int>(at_); }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  /// Up to one of `ends`, or to the end of the line where there are none.
  YamlNode scalar(std::string_view ends) {
    const std::size_t end = std::min(text_.find_first_of(ends, at_), text_.size());
    std::string_view word = text_.substr(at_, end - at_);
    while (word.ends_with(' ')) word.remove_suffix(1);
    const auto kind = word.empty() ? YamlNode::Kind::Null : YamlNode::Kind::Scalar;
    YamlNode node = plain_node(kind, line_, here(), word);
    at_ = end;
    return node;
  }
  YamlNode sequence() {
    YamlNode node = plain_node(YamlNode::Kind::Sequence, line_, here() - 1);
    while (!take(']')) {
      node.items.push_back(value(",]"));
      separate(']');
    }
    return node;
  }
  YamlNode map() {
    YamlNode node = plain_node(YamlNode::Kind::Map, line_, here() - 1);
    skip_spaces();
    while (!take('}')) {
      YamlNode key = scalar(":");
      if (!take(':')) fail();
      node.entries.push_back({std::move(key), value(",}")});
      separate('}');
    }
    return node;
  }
  void separate(char close) {
    skip_spaces();
    const bool more = take(',');
    skip_spaces();
    if (!more && (at_end() || text_[at_] != close)) fail();
  }
  [[noreturn]] void fail() const {
    throw std::logic_error{fmt::format("line {}: '{}' is not of the plain kind", line_, text_)};
  }

  std::string_view text_;
  int line_, column_;
  std::size_t at_ = 0;
};

class Blocks {
 public:
  explicit Blocks(std::vector<PlainLine> lines) : lines_{std::move(lines)} {}

  YamlNode read() {
    if (lines_.empty()) return {};
    YamlNode root = block();
    if (at_ < lines_.size()) fail();
    return root;
  }

 private:
  YamlNode block() {
    const int column = lines_[at_].column;
    const bool is_list = starts_item();
    YamlNode node = plain_node(is_list ? YamlNode::Kind::Sequence : YamlNode::Kind::Map,
                               lines_[at_].number, column);
    while (at_ < lines_.size() && lines_[at_].column == column && starts_item() == is_list) {
      if (is_list) {
        node.items.push_back(item());
      } else {
        entry(node);
      }
    }
    if (at_ < lines_.size() && lines_[at_].column > column) fail();
    return node;
  }
  bool starts_item() const { return lines_[at_].text.starts_with("- "); }

  YamlNode item() {
    PlainLine& line = lines_[at_];
    line.text.remove_prefix(2);
    line.column += 2;
    return block();
  }
  void entry(YamlNode& node) {
    const PlainLine line = lines_[at_++];
    const std::size_t colon = line.text.find(':');
    if (colon == std::string_view::npos) fail();
    YamlNode key =
        plain_node(YamlNode::Kind::Scalar, line.number, line.column, line.text.substr(0, colon));
    if (colon + 1 < line.text.size()) {
      const std::size_t begin = line.text.find_first_not_of(' ', colon + 1);
      Flow flow{line.text.substr(begin), line.number, line.column + static_cast<int>(begin)};
      node.entries.push_back({std::move(key), flow.value({})});
      if (!flow.at_end()) fail();
      return;
    }
    const bool is_inside =
        at_ < lines_.size() &&
        (lines_[at_].column > line.column || (lines_[at_].column == line.column && starts_item()));
    YamlNode value = is_inside ? block() : plain_node(YamlNode::Kind::Null, line.number, 0);
    node.entries.push_back({std::move(key), std::move(value)});
  }
  [[noreturn]] void fail() const {
    const PlainLine& line = lines_[std::min(at_, lines_.size() - 1)];
    throw std::logic_error{
        fmt::format("line {}: '{}' is not of the plain kind", line.number, line.text)};
  }

  std::vector<PlainLine> lines_;
  std::size_t at_ = 0;
};

}  // namespace

YamlNode parse_plain_yaml(std::string_view text) { return Blocks{lines_of(text)}.read(); }

}  // namespace foretrace
