#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scenarios/text/yaml_reader.h"

namespace foretrace {
namespace {

constexpr char kMark = '=';  // begins what stands for items

/// Whether a line is an item of a block sequence that is a flow map behind a key, as a whole.
bool is_item(std::string_view line) {
  return line.starts_with("- ") && line.ends_with('}') &&
         line.find(": {") != std::string_view::npos;
}

/// The items that are a line each, every text once. `text` stays while this is used.
class Items {
 public:
  Items(Problems& problems, StandsForAlike stands_for_alike)
      : problems_{problems}, stands_for_alike_{stands_for_alike} {}

  /// A line behind the last one, with the same margin where `continues`; else the first of a run of
  /// lines. Returns the run's number.
  std::size_t add(std::string_view line, bool continues) {
    if (!continues) runs_.push_back({order_.size(), 0});
    order_.push_back(number_of(line));
    ++runs_.back().count;
    return runs_.size() - 1;
  }

  /// Puts the items of each run in its place, below `node`.
  void put_into(YamlNode& node) {
    for (YamlEntry& entry : node.entries) put_into(entry.value);
    if (std::ranges::none_of(node.items, is_run)) {
      for (YamlNode& item : node.items) put_into(item);
      return;
    }
    const std::uint32_t sequence = ++sequences_;
    std::size_t count = 0;
    for (const YamlNode& item : node.items) count += is_run(item) ? run_of(item).count : 1;
    std::vector<YamlNode> all;
    all.reserve(count);
    for (YamlNode& item : node.items) {
      if (!is_run(item)) {
        put_into(item);
        all.push_back(std::move(item));
        continue;
      }
      const Run run = run_of(item);
      for (std::size_t i = 0; i < run.count; ++i) {
        // A line's first two columns are its hyphen's and a space, as the run's are.
        all.push_back(item_at(order_[run.begin + i], sequence, item.line + static_cast<int>(i),
                              item.column - kFirstColumn));
      }
    }
    node.items = std::move(all);
  }

 private:
  static constexpr int kFirstColumn = 3;
  struct Item {
    YamlNode node;
    std::uint32_t sequence = 0;  ///< the last one that it is in
  };
  struct Run {
    std::size_t begin, count;  ///< in order_
  };

  static bool is_run(const YamlNode& item) { return item.text.starts_with(kMark); }
  const Run& run_of(const YamlNode& item) const {
    std::size_t number = 0;
    std::from_chars(item.text.data() + 1, item.text.data() + item.text.size(), number);
    return runs_[number];
  }

  std::uint32_t number_of(std::string_view line) {
    const auto [at, is_new] = numbers_.try_emplace(line, static_cast<std::uint32_t>(items_.size()));
    if (is_new) {
      YamlNode sequence = parse_yaml(line, problems_);
      items_.push_back({sequence.items.empty() ? YamlNode{} : std::move(sequence.items.front())});
      items_.back().node.alike = static_cast<std::uint32_t>(items_.size());
    }
    return at->second;
  }

  YamlNode item_at(std::uint32_t number, std::uint32_t sequence, int line, int columns) {
    Item& item = items_[number];
    const YamlNode& whole = item.node;
    const bool stood_here = std::exchange(item.sequence, sequence) == sequence;
    YamlNode node;
    if (stood_here && stands_for_alike_ != nullptr && whole.entries.size() == 1 &&
        stands_for_alike_(whole.entries.front().key.text)) {
      node.kind = whole.kind;
      node.alike = whole.alike;
      node.column = whole.column;
      node.entries.emplace_back().key = whole.entries.front().key;
    } else {
      node = whole;
    }
    move(node, line, columns);
    return node;
  }

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
  StandsForAlike stands_for_alike_;
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
  std::vector<Item> items_;
  std::vector<std::uint32_t> order_;  ///< of all lines that are items: their numbers
  std::vector<Run> runs_;
  std::uint32_t sequences_ = 0;
};

}  // namespace

YamlNode parse_alike(std::string_view text, Problems& problems, StandsForAlike stands_for_alike) {
  Items items{problems, stands_for_alike};
  std::string shorter;
  std::size_t margin_of_run = std::string_view::npos;  // npos: the line before is no item
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const std::size_t margin = std::min(line.find_first_not_of(' '), line.size());
    if (!is_item(line.substr(margin))) {
      shorter += line;
      margin_of_run = std::string_view::npos;
    } else if (margin == margin_of_run) {  // an empty line: the others keep their numbers
      items.add(line.substr(margin), true);
    } else {
      fmt::format_to(std::back_inserter(shorter), "{}- {}{}", line.substr(0, margin), kMark,
                     items.add(line.substr(margin), false));
      margin_of_run = margin;
    }
    shorter += '\n';
    begin = end + 1;
  }
  YamlNode root = parse_yaml(shorter, problems);
  items.put_into(root);
  return root;
}

}  // namespace foretrace
