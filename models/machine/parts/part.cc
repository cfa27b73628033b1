#include "models/machine/parts/part.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <mutex>

#include "models/machine/machine.h"
#include "models/machine/value_text.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/base/text/words.h"
#include "scenarios/base/text/yaml_reader.h"

namespace foretrace {
namespace {

enum class FactUnit : std::uint8_t { Count, Time, Size, Rate, FlopRate, Clock, Watt, Word };

struct FactInfo {
  std::string_view folder, key;
  FactUnit unit;
  std::string_view text;
};

constexpr std::array kFacts{
#define FACT(folder, key, unit, text) FactInfo{#folder, key, FactUnit::unit, text},
#define WORD(folder, key, text) FactInfo{#folder, key, FactUnit::Word, text},
#include "models/machine/parts/facts.def"
#undef FACT
#undef WORD
};

/// What no GPU lacks: `none` is for units that some have.
constexpr std::array<std::string_view, 8> kEachHas{
    "capability", "sm_count", "clock", "memory", "memory_bandwidth", "l2_size", "fp32", "power"};
constexpr double kMostOfAFact = 1e6;  // a count
constexpr std::array<std::string_view, 4> kFolders{"gpus", "links", "hosts", "networks"};
constexpr std::array<std::string_view, 4> kWords{"GPU", "link", "host", "network"};

std::optional<double> suffixed(std::string_view text, std::string_view suffix, double scale) {
  if (!text.ends_with(suffix)) return {};
  text.remove_suffix(suffix.size());
  const Parsed<double> value = parse_value(text, ParamUnit::Count);
  if (!value || !(*value > 0)) return {};
  return *value * scale;
}

Parsed<double> parse_fact(std::string_view text, FactUnit unit) {
  switch (unit) {
    case FactUnit::Time:
      return parse_value(text, ParamUnit::Time);
    case FactUnit::Size:
      return parse_value(text, ParamUnit::Size);
    case FactUnit::Rate:
      return parse_value(text, ParamUnit::Rate);
    case FactUnit::FlopRate:
      return parse_value(text, ParamUnit::FlopRate);
    case FactUnit::Clock:
      if (const auto ghz = suffixed(text, "GHz", 1e9)) return *ghz;
      if (const auto mhz = suffixed(text, "MHz", 1e6)) return *mhz;
      return tl::unexpected{
          QuantityError{.message = fmt::format("'{}' is no clock", text), .hint = "1.98 GHz"}};
    case FactUnit::Watt:
      if (const auto watt = suffixed(text, "W", 1)) return *watt;
      return tl::unexpected{
          QuantityError{.message = fmt::format("'{}' is no power", text), .hint = "700 W"}};
    case FactUnit::Count:
    case FactUnit::Word:
      break;
  }
  Parsed<double> count = parse_value(text, ParamUnit::Count);
  if (count && (*count > kMostOfAFact || *count < 0)) {
    return tl::unexpected{QuantityError{.message = fmt::format("'{}' is {} than any machine has",
                                                               text, *count < 0 ? "less" : "more"),
                                        .hint = fmt::format("0 to {}", kMostOfAFact)}};
  }
  return count;
}

class PartReader {
 public:
  PartReader(std::string_view text, const std::string& file, PartFolder folder) : problems_{file} {
    part_.folder = folder;
    part_.name = std::filesystem::path{file}.stem().string();
    root_ = parse_yaml(text, problems_);
  }

  Checked<Part> read() {
    MapReader map{root_, fmt::format("a file of {}", folder_name(part_.folder)), problems_};
    const YamlNode* const version = map.required("schema_version");
    if (version != nullptr && version->text != "1") {
      problems_.error(*version, fmt::format("schema_version {} is not known", version->text),
                      "parts are of version 1: models/machines/README.md");
    }
    if (const YamlNode* summary = map.optional("summary")) read_summary(*summary);
    if (const YamlNode* sources = map.optional("sources")) {
      sources_ = read_sources(*sources, problems_);
    }
    for (const FactInfo& known : kFacts) {
      if (known.folder != folder_name(part_.folder) || known.unit != FactUnit::Word) continue;
      if (const YamlNode* word = map.optional(known.key)) read_word(known, *word);
    }
    if (const YamlNode* facts = map.required("facts")) read_facts(*facts);
    if (part_.folder == PartFolder::Hosts) read_measured(map);
    map.finish();
    if (problems_.error_count() > 0) return tl::unexpected{problems_.take()};
    return std::move(part_);
  }

 private:
  void read_summary(const YamlNode& node) {
    if (in_one_line(node.text) != node.text) problems_.error(node, "'summary' is one line");
    part_.summary = node.text;
  }

  void read_word(const FactInfo& known, const YamlNode& node) {
    std::string text = node.text;
    for (const YamlNode& item : node.items) text += (text.empty() ? "" : ",") + item.text;
    if (text.empty()) problems_.error(node, fmt::format("'{}' is a word", known.key));
    part_.words.emplace(known.key, std::move(text));
  }

  void read_facts(const YamlNode& node) {
    MapReader map{node, "facts", problems_};
    for (const FactInfo& known : kFacts) {
      if (known.folder != folder_name(part_.folder) || known.unit == FactUnit::Word) continue;
      if (const YamlNode* entry = map.optional(known.key)) read_fact(known, *entry);
    }
    map.finish();
  }

  void read_measured(MapReader& map) {
    if (const YamlNode* parameters = map.optional("parameters")) {
      part_.parameters = read_parameter_entries(*parameters, sources_, problems_);
      for (const auto& [param, value] : part_.parameters) {
        if (is_of_hosts(param)) continue;
        const std::string key{info(param).key};
        const YamlNode* const node = child(*parameters, key);
        problems_.error(
            node == nullptr ? *parameters : *node, fmt::format("'{}' is nothing of a host's", key),
            "a host's file has host.*, storage.*, copies of pageable memory and caches");
      }
    }
    if (const YamlNode* others = map.optional("measured")) read_others(*others);
  }

  /// Quantities that no parameter stands for: read as strictly, and kept by nobody.
  void read_others(const YamlNode& node) {
    if (node.kind != YamlNode::Kind::Sequence) {
      problems_.error(node, "'measured' is a list", "- {what: clock_gettime, value: 21 ns}");
    }
    for (const YamlNode& item : node.items) {
      MapReader row{item, "a row of 'measured'", problems_};
      static_cast<void>(row.required("what"));
      static_cast<void>(row.required("value"));
      static_cast<void>(row.optional("size"));
      static_cast<void>(row.optional("spread"));
      row.finish();
    }
  }

  static const YamlNode* child(const YamlNode& map, std::string_view key) {
    for (const YamlEntry& entry : map.entries) {
      if (entry.key.text == key) return &entry.key;
    }
    return nullptr;
  }

  void read_fact(const FactInfo& known, const YamlNode& node) {
    MapReader map{node, fmt::format("fact {}", known.key), problems_};
    Fact fact;
    if (const YamlNode* value = map.required("value")) {
      fact.text = value->text;
      fact.is_none = value->text == "none";
      if (fact.is_none && std::ranges::count(kEachHas, known.key) != 0) {
        problems_.error(*value, fmt::format("no GPU is without '{}'", known.key),
                        "left out, it is carried over from the donor");
      }
      const Parsed<double> parsed =
          fact.is_none ? Parsed<double>{0.0} : parse_fact(value->text, known.unit);
      if (parsed) {
        fact.value = *parsed;
        const bool is_whole = fact.value >= 1 && std::floor(fact.value) == fact.value;
        if (part_.folder == PartFolder::Hosts && known.key == "cores" && !is_whole) {
          problems_.error(*value, "a host has a whole number of cores, at least 1");
        }
      } else {
        problems_.error(*value, parsed.error().message, parsed.error().hint, parsed.error().offset);
      }
    }
    if (const YamlNode* source = map.required("source")) fact.source = source_of(*source);
    map.finish();
    part_.facts.emplace(known.key, std::move(fact));
  }

  std::shared_ptr<const Source> source_of(const YamlNode& node) {
    for (const auto& source : sources_) {
      if (source->id == node.text) return source;
    }
    std::vector<std::string> known;
    for (const auto& source : sources_) known.push_back(source->id);
    problems_.error(node, fmt::format("no source '{}' stands under sources:", node.text),
                    known.empty() ? "sources: {ID: {class: datasheet, text: \"...\"}}"
                                  : suggest(node.text, known));
    return nullptr;
  }

  Problems problems_;
  YamlNode root_;
  Part part_;
  std::vector<std::shared_ptr<const Source>> sources_;
};

bool is_alike(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

Part parsed(const std::string& text, const std::string& file, PartFolder folder) {
  Checked<Part> part = read_part(text, file, folder);
  if (!part) throw UsageError{render(part.error(), text)};
  return *std::move(part);
}

Part read_file(const std::filesystem::path& file, PartFolder folder) {
  return parsed(read_text_file(file), file.string(), folder);
}

std::filesystem::path directory_of(PartFolder folder) {
  return machine_directory() / folder_name(folder);
}

/// The files of GPUs, each parsed when it is first asked for: most commands want one or two.
class GpuFiles {
 public:
  GpuFiles() {
    for (const std::string& name : part_names(PartFolder::Gpus)) {
      const auto file = directory_of(PartFolder::Gpus) / (name + ".yaml");
      files_.push_back({file.string(), read_text_file(file), {}});
    }
  }

  /// The first that `is_it` says it is. Files whose text lacks `hint` are not looked at.
  template <typename IsIt>
  std::optional<Part> find(const std::string& hint, const IsIt& is_it) {
    const std::lock_guard lock{mutex_};
    for (File& one : files_) {
      if (one.text.find(hint) == std::string::npos) continue;
      if (!one.part) one.part = parsed(one.text, one.file, PartFolder::Gpus);
      if (is_it(*one.part)) return one.part;
    }
    return {};
  }

 private:
  struct File {
    std::string file, text;
    std::optional<Part> part;
  };
  std::mutex mutex_;
  std::vector<File> files_;
};

GpuFiles& gpu_files() {
  static GpuFiles files;
  return files;
}

}  // namespace

bool is_of_hosts(Param param) {
  constexpr std::array kOthers{Param::PageableH2dBase,   Param::PageableH2dBandwidth,
                               Param::PageableH2dCached, Param::PageableH2dCore,
                               Param::PageableD2hBase,   Param::PageableD2hBandwidth,
                               Param::PageableD2hFirst,  Param::PageableD2hFirstBandwidth,
                               Param::FreshD2hBandwidth, Param::SmallPageableBandwidth,
                               Param::CoreCache,         Param::HostCache,
                               Param::KeptCache,         Param::UploadCache};
  const std::string_view key = info(param).key;
  return std::ranges::count(kOthers, param) != 0 || key.starts_with("host.") ||
         key.starts_with("storage.");
}

std::string_view folder_name(PartFolder folder) {
  return kFolders[static_cast<std::size_t>(folder)];
}

std::string_view part_word(PartFolder folder) { return kWords[static_cast<std::size_t>(folder)]; }

std::string Part::word(std::string_view key) const {
  const auto found = words.find(key);
  return found == words.end() ? std::string{} : found->second;
}

std::optional<double> Part::value(std::string_view key) const {
  const auto found = facts.find(key);
  if (found == facts.end() || found->second.is_none) return {};
  return found->second.value;
}

bool Part::lacks(std::string_view key) const {
  const auto found = facts.find(key);
  return found != facts.end() && found->second.is_none;
}

Checked<Part> read_part(std::string_view text, const std::string& file, PartFolder folder) {
  return PartReader{text, file, folder}.read();
}

std::vector<std::string> part_names(PartFolder folder) {
  std::vector<std::string> names;
  std::error_code wrong;
  for (std::filesystem::directory_iterator files{directory_of(folder), wrong}, end;
       !wrong && files != end; files.increment(wrong)) {
    if (files->path().extension() == ".yaml") names.push_back(files->path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

std::optional<std::string> find_part(PartFolder folder, const std::string& name) {
  for (const std::string& known : part_names(folder)) {
    if (is_alike(known, name)) return known;
  }
  if (folder != PartFolder::Gpus) return {};
  const auto also = gpu_files().find("", [&](const Part& gpu) {
    const std::string list = "," + gpu.word("also") + ",";
    for (std::size_t at = 0; at + 1 < list.size();) {
      const std::size_t end = list.find(',', at + 1);
      if (is_alike(std::string_view{list}.substr(at + 1, end - at - 1), name)) return true;
      at = end;
    }
    return false;
  });
  return also ? std::optional{also->name} : std::nullopt;
}

Part load_part(PartFolder folder, const std::string& name_or_path) {
  if (name_or_path.ends_with(".yaml")) return read_file(name_or_path, folder);
  if (const auto name = find_part(folder, name_or_path)) {
    return read_file(directory_of(folder) / (*name + ".yaml"), folder);
  }
  const std::string nearest = suggest(name_or_path, part_names(folder));
  throw UsageError{fmt::format("unknown {} '{}'{}{}", part_word(folder), name_or_path,
                               nearest.empty() ? "" : "\n  hint: ", nearest)};
}

std::optional<Part> part_of_gpu(const std::string& gpu_name) {
  const auto is_it = [&](const Part& one) { return one.word("gpu") == gpu_name; };
  // Nearly always its name stands in its file as it is; YAML may also write it otherwise.
  if (auto found = gpu_files().find(gpu_name, is_it)) return found;
  if (auto found = gpu_files().find("", is_it)) return found;
  const auto other = find_part(PartFolder::Gpus, gpu_name);
  return other ? std::optional{load_part(PartFolder::Gpus, *other)} : std::nullopt;
}

std::string fact_text(const Fact& fact) { return fact.is_none ? "none" : fact.text; }

std::string_view fact_meaning(PartFolder folder, std::string_view key) {
  const auto* const found = std::ranges::find_if(kFacts, [&](const FactInfo& known) {
    return known.folder == folder_name(folder) && known.key == key;
  });
  return found == kFacts.end() ? std::string_view{} : found->text;
}

}  // namespace foretrace
