#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <unordered_map>

#include "scenarios/text/yaml_reader.h"

namespace foretrace {
namespace {

constexpr char kMark = '=';  // begins what stands for an item

/// Whether a line is an item of a block sequence that is a flow map behind a key, as a whole.
bool is_item(std::string_view line) {
  return line.starts_with("- ") && line.ends_with('}') &&
         line.find(": {") != std::string_view::npos;
}

/// The items that are a line each, every text once.
class Items {
 public:
  explicit Items(Problems& problems) : problems_{problems} {}

  std::size_t number_of(std::string_view line) {
    const auto [at, is_new] = numbers_.try_emplace(std::string{line}, items_.size());
    if (is_new) {
      YamlNode sequence = parse_yaml(line, problems_);
      items_.push_back(sequence.items.empty() ? YamlNode{} : std::move(sequence.items.front()));
      items_.back().alike = static_cast<std::uint32_t>(items_.size());
    }
    return at->second;
  }

  /// Puts each item in the place of its number, below `node`.
  void put_into(YamlNode& node) const {
    for (YamlEntry& entry : node.entries) put_into(entry.value);
    for (YamlNode& item : node.items) {
      if (!item.text.starts_with(kMark)) {
        put_into(item);
        continue;
      }
      std::size_t number = 0;
      std::from_chars(item.text.data() + 1, item.text.data() + item.text.size(), number);
      // A line's first two columns are its hyphen's and a space, as the number's are.
      const int line = item.line;
      const int columns = item.column - kFirstColumn;
      item = items_[number];
      move(item, line, columns);
    }
  }

 private:
  static constexpr int kFirstColumn = 3;
  static void move(YamlNode& node, int line, int columns) {
    node.line = line;
    node.column += columns;
    for (YamlNode& item : node.items) move(item, line, columns);
    for (auto& [key, value] : node.entries) {
      move(key, line, columns);
      move(value, line, columns);
    }
  }

  Problems& problems_;
  std::unordered_map<std::string, std::size_t> numbers_;
  std::vector<YamlNode> items_;
};

}  // namespace

YamlNode parse_alike(std::string_view text, Problems& problems) {
  Items items{problems};
  std::string shorter;
  shorter.reserve(text.size());
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const std::size_t margin = std::min(line.find_first_not_of(' '), line.size());
    if (is_item(line.substr(margin))) {
      fmt::format_to(std::back_inserter(shorter), "{}- {}{}", line.substr(0, margin), kMark,
                     items.number_of(line.substr(margin)));
    } else {
      shorter += line;
    }
    shorter += '\n';
    begin = end + 1;
  }
  YamlNode root = parse_yaml(shorter, problems);
  items.put_into(root);
  return root;
}

}  // namespace foretrace
