#include "scenarios/include/include.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "scenarios/base/text/text_file.h"

namespace foretrace {
namespace {

constexpr int kDeepest = 16;                 // files within files
constexpr std::size_t kMostNodes = 300'000;  // of all parts together
constexpr std::string_view kInclude = "include";

/// What a part may declare; `ops` and `parameters` beside it.
constexpr std::array<std::string_view, 10> kSections{
    "environment", "streams", "events",         "buffers", "communicators",
    "signals",     "graphs",  "process_groups", "threads", "expect"};

YamlEntry* find_entry(YamlNode& map, std::string_view key) {
  const auto found =
      std::ranges::find(map.entries, key, [](const YamlEntry& entry) { return entry.key.text; });
  return found == map.entries.end() ? nullptr : &*found;
}

bool is_include(const YamlNode& item) {
  return item.kind == YamlNode::Kind::Map && item.entries.size() == 1 &&
         item.entries.front().key.text == kInclude;
}

class Includer {
 public:
  Includer(Problems& problems, IncludedTexts* texts)
      : problems_{problems}, texts_{texts}, from_texts_{texts != nullptr && !texts->empty()} {}

  bool put_into(YamlNode& root) {
    put_declarations(root);
    for (YamlEntry& entry : root.entries) {
      if (entry.key.text == "threads") put_operations(entry.value);
    }
    return found_any_;
  }

 private:
  struct Part {
    std::shared_ptr<const std::string> text;
    YamlNode root;
  };

  /// `include: {file: ...}`, or a list of such, at the top of a scenario or part.
  void put_declarations(YamlNode& root) {
    YamlEntry* const entry = find_entry(root, kInclude);
    if (entry == nullptr) return;
    const YamlNode includes = std::move(entry->value);
    root.entries.erase(root.entries.begin() + (entry - root.entries.data()));
    const auto put = [&](const YamlNode& include) {
      auto part = part_of(include);
      if (!part) return;
      bool declares = false;
      for (YamlEntry& section : part->entries) {
        if (std::ranges::find(kSections, section.key.text) == kSections.end()) continue;
        declares = true;
        join(root, std::move(section));
      }
      if (!declares) {
        problems_.error(include, "this part declares nothing",
                        "its operations go where operations stand: - include: {file: ...}");
      }
    };
    if (includes.kind == YamlNode::Kind::Sequence) {
      std::ranges::for_each(includes.items, put);
    } else {
      put(includes);
    }
  }

  void join(YamlNode& root, YamlEntry section) {
    YamlEntry* const there = find_entry(root, section.key.text);
    if (there == nullptr) {
      const YamlEntry* const threads = find_entry(root, "threads");
      const auto at = threads == nullptr ? root.entries.end()
                                         : root.entries.begin() + (threads - root.entries.data());
      root.entries.insert(at, std::move(section));
      return;
    }
    YamlNode& into = there->value;
    if (into.kind != section.value.kind) {
      problems_.error(section.value,
                      fmt::format("'{}' cannot be joined with that of {}:{}", section.key.text,
                                  problems_.file_of(into), into.line));
      return;
    }
    for (YamlNode& item : section.value.items) into.items.push_back(std::move(item));
    for (YamlEntry& entry : section.value.entries) {
      if (const YamlEntry* const first = find_entry(into, entry.key.text)) {
        problems_.error(
            entry.key, fmt::format("duplicate key '{}'", entry.key.text),
            fmt::format("first given in {}:{}; a name may hold a parameter: {}_$k",
                        problems_.file_of(first->key), first->key.line, entry.key.text));
        continue;
      }
      into.entries.push_back(std::move(entry));
    }
  }

  /// In every list below `node`: the part's operations instead of `- include: {...}`.
  void put_operations(YamlNode& node) {
    for (YamlEntry& entry : node.entries) put_operations(entry.value);
    std::vector<YamlNode> items;
    for (YamlNode& item : node.items) {
      if (!is_include(item)) {
        put_operations(item);
        items.push_back(std::move(item));
        continue;
      }
      const YamlNode& include = item.entries.front().value;
      auto part = part_of(include);
      if (!part) continue;
      YamlEntry* const ops = find_entry(*part, "ops");
      if (ops == nullptr || ops->value.kind != YamlNode::Kind::Sequence) {
        problems_.error(include, "this part has no list of operations 'ops'",
                        "what it declares goes to the top of the file: include: {file: ...}");
        continue;
      }
      for (YamlNode& op : ops->value.items) items.push_back(std::move(op));
    }
    node.items = std::move(items);
  }

  /// The part that `include` names, filled in, with its own includes put in. Empty when that is
  /// wrong.
  std::optional<YamlNode> part_of(const YamlNode& include) {
    found_any_ = true;
    const std::size_t errors = problems_.error_count();
    MapReader map{include, "an include", problems_};
    const YamlNode* const file = map.required("file");
    const YamlNode* const with = map.optional("with");
    map.finish();
    if (file == nullptr || problems_.error_count() > errors) return std::nullopt;
    const std::string path = path_of(*file);
    if (problems_.is_within(include, path)) {
      problems_.error(*file, fmt::format("{} includes itself", path));
      return std::nullopt;
    }
    if (problems_.depth_of(include) >= kDeepest) {
      problems_.error(*file, fmt::format("files within files more than {} deep", kDeepest));
      return std::nullopt;
    }
    const Part* const part = load(*file, path);
    if (part == nullptr) return std::nullopt;
    const std::uint16_t source = problems_.add_source(path, part->text, include);
    YamlNode root = part->root;
    if (source == 0 || !mark(root, source, include.place())) {
      problems_.error(*file,
                      fmt::format("the parts hold more than {} values together", kMostNodes));
      return std::nullopt;
    }
    if (!check_keys(root) || !fill_in(root, include, with)) return std::nullopt;
    put_declarations(root);
    for (YamlEntry& entry : root.entries) {
      if (entry.key.text == "ops" || entry.key.text == "threads") put_operations(entry.value);
    }
    return root;
  }

  std::string path_of(const YamlNode& file) const {
    const std::filesystem::path above =
        std::filesystem::path{problems_.file_of(file)}.parent_path();
    return (above / file.text).lexically_normal().string();
  }

  static std::string hint_for(const YamlNode& file, const std::string& path) {
    const std::string similar = similar_file(path);
    if (!similar.empty() || std::filesystem::path{file.text}.is_absolute()) return similar;
    return "the name is relative to the file that it stands in";
  }

  const Part* load(const YamlNode& file, const std::string& path) {
    if (const auto known = parts_.find(path); known != parts_.end()) return &known->second;
    if (from_texts_) {
      if (const auto text = texts_->find(path); text != texts_->end()) {
        return parse(file, path, text->second);
      }
    }
    auto text = read_plain_file(path, kLargestText);
    if (!text) {
      problems_.error(file, fmt::format("{}: {}", path, text.error()), hint_for(file, path));
      return nullptr;
    }
    if (texts_ != nullptr) (*texts_)[path] = *text;
    return parse(file, path, *std::move(text));
  }

  /// Its mistakes of form are said once, however often it is included.
  const Part* parse(const YamlNode& file, const std::string& path, std::string text) {
    Part part{std::make_shared<const std::string>(std::move(text)), {}};
    Problems own{path};
    part.root = parse_yaml(*part.text, own);
    if (own.error_count() > 0) {
      const std::uint16_t source = problems_.add_source(path, part.text, file);
      for (const Diagnostic& wrong : own.take()) {
        YamlNode at;
        at.source = source;
        at.line = wrong.at.line;
        at.column = wrong.at.column;
        problems_.error(at, wrong.message, wrong.hint);
      }
      return nullptr;
    }
    if (part.root.kind != YamlNode::Kind::Map) {
      problems_.error(file,
                      fmt::format("{} is no part: it is a map with 'ops', 'threads', ...", path));
      return nullptr;
    }
    return &parts_.emplace(path, std::move(part)).first->second;
  }

  bool mark(YamlNode& node, std::uint16_t source, std::pair<int, int> place) {
    if (++nodes_ > kMostNodes) return false;
    node.source = source;
    std::tie(node.include_line, node.include_column) = place;
    const auto mark_all = [&](YamlNode& below) { return mark(below, source, place); };
    return std::ranges::all_of(node.items, mark_all) &&
           std::ranges::all_of(node.entries, [&](YamlEntry& entry) {
             return mark_all(entry.key) && mark_all(entry.value);
           });
  }

  bool check_keys(const YamlNode& root) {
    const std::size_t errors = problems_.error_count();
    MapReader map{root, "a part", problems_};
    map.optional("parameters");
    map.optional("ops");
    map.optional(kInclude);
    for (const std::string_view section : kSections) map.optional(section);
    map.finish();
    return problems_.error_count() == errors;
  }

  /// The part's parameters get the include's values, or their own; a parameter without one needs
  /// it.
  bool fill_in(YamlNode& root, const YamlNode& include, const YamlNode* with) {
    const std::size_t errors = problems_.error_count();
    std::map<std::string, std::string> values;
    std::vector<std::string> names;
    if (YamlEntry* const declared = find_entry(root, "parameters")) {
      for (const YamlEntry& parameter : declared->value.entries) {
        names.push_back(parameter.key.text);
        if (parameter.value.kind == YamlNode::Kind::Scalar) {
          values[parameter.key.text] = parameter.value.text;
        } else if (parameter.value.kind != YamlNode::Kind::Null) {
          problems_.error(parameter.value, "a parameter is one word, number or expression");
        }
      }
      root.entries.erase(root.entries.begin() + (declared - root.entries.data()));
    }
    for (const YamlEntry& given : with == nullptr ? std::vector<YamlEntry>{} : with->entries) {
      if (std::ranges::find(names, given.key.text) == names.end()) {
        problems_.error(given.key, fmt::format("the part has no parameter '{}'", given.key.text),
                        suggest(given.key.text, names));
      } else if (given.value.kind != YamlNode::Kind::Scalar) {
        problems_.error(given.value, "a parameter is one word, number or expression");
      } else {
        values[given.key.text] = given.value.text;
      }
    }
    for (const std::string& name : names) {
      if (values.contains(name) || problems_.error_count() > errors) continue;
      problems_.error(include, fmt::format("the part needs a value for '{}'", name),
                      fmt::format("with: {{{}: ...}}", name));
    }
    if (problems_.error_count() == errors) fill(root, values, problems_);
    return problems_.error_count() == errors;
  }

  Problems& problems_;
  IncludedTexts* texts_;
  bool from_texts_;
  std::map<std::string, Part> parts_;
  std::size_t nodes_ = 0;
  bool found_any_ = false;
};

}  // namespace

bool put_in_parts(YamlNode& root, Problems& problems, IncludedTexts* texts) {
  return Includer{problems, texts}.put_into(root);
}

}  // namespace foretrace
