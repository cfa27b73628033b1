#include "models/machine/source.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "scenarios/base/text/yaml_reader.h"
#include "scenarios/base/values/quantity.h"

namespace foretrace {
namespace {

constexpr std::string_view kCarried = "carried over";
constexpr std::array<std::string_view, 4> kClassWords{"fit", "datasheet", "published", "assumed"};

std::optional<std::uint64_t> exact_bytes_in(std::string_view text) {
  const Parsed<Quantity> parsed = parse_constant(text);
  if (!parsed || parsed->unit != kSize || parsed->constant < 0) return {};
  const auto whole = parsed->constant.floor().rounded();
  return whole ? std::optional{static_cast<std::uint64_t>(*whole)} : std::nullopt;
}

std::optional<ByteRange> read_sizes(const YamlNode& node, Problems& problems) {
  const std::string_view text = node.text;
  const std::size_t dots = text.find("..");
  if (dots != text.npos) {
    const auto least = exact_bytes_in(text.substr(0, dots));
    const auto most = exact_bytes_in(text.substr(dots + 2));
    if (least && most && *least <= *most) return ByteRange{*least, *most};
  }
  problems.error(node, fmt::format("'{}' is no range of sizes", text), "write it as 64B..2GiB");
  return {};
}

std::vector<std::uint32_t> read_ranks(const YamlNode& node, Problems& problems) {
  std::vector<std::uint32_t> ranks;
  if (node.items.empty()) {
    problems.error(node, "ranks: a list of numbers of GPUs is needed", "write it as [2, 4]");
  }
  for (const YamlNode& item : node.items) {
    std::uint32_t count = 0;
    const char* const end = item.text.data() + item.text.size();
    const auto [rest, code] = std::from_chars(item.text.data(), end, count);
    if (code == std::errc{} && rest == end && count > 0) {
      ranks.push_back(count);
    } else {
      problems.error(item, fmt::format("'{}' is not a number of GPUs", item.text));
    }
  }
  return ranks;
}

LearnedFrom read_learned_from(const YamlNode& node, Problems& problems) {
  MapReader map{node, "learned_from", problems};
  LearnedFrom entry;
  if (const YamlNode* scenario = map.optional("scenario")) entry.scenario = scenario->text;
  if (const YamlNode* other = map.optional("other")) entry.other = other->text;
  if (const YamlNode* ranks = map.optional("ranks")) entry.ranks = read_ranks(*ranks, problems);
  if (const YamlNode* sizes = map.optional("sizes")) entry.sizes = read_sizes(*sizes, problems);
  if (const YamlNode* which = map.optional("which")) {
    entry.every_other = which->text == "every other";
    if (!entry.every_other) {
      problems.error(*which, fmt::format("which: '{}' is not known", which->text),
                     "'every other', or leave it out for all sizes");
    }
  }
  if (const YamlNode* data = map.optional("data")) entry.data = data->text;
  map.finish();
  if (entry.scenario.empty() == entry.other.empty()) {
    problems.error(node, "learned_from: either 'scenario' or 'other' is needed",
                   "scenario: a name or a pattern; other: what is no scenario, in words");
  }
  return entry;
}

ParameterClass read_class(const YamlNode& node, Problems& problems) {
  const auto* const found = std::ranges::find(kClassWords, node.text);
  if (found != kClassWords.end()) return static_cast<ParameterClass>(found - kClassWords.begin());
  problems.error(node, fmt::format("unknown class '{}'", node.text),
                 suggest(node.text, {"fit", "datasheet", "published", "assumed", "carried over"}));
  return ParameterClass::Assumed;
}

Source read_source(const YamlEntry& from, Problems& problems) {
  const YamlNode& node = from.value;
  MapReader map{node, fmt::format("source {}", from.key.text), problems};
  Source source{.id = from.key.text, .text = {}, .learned_from = {}, .command = {}};
  if (const YamlNode* kind = map.required("class")) {
    source.is_carried = kind->text == kCarried;
    source.kind = source.is_carried ? ParameterClass::Assumed : read_class(*kind, problems);
  }
  if (const YamlNode* text = map.required("text")) source.text = text->text;
  if (const YamlNode* list = map.optional("learned_from")) {
    for (const YamlNode& item : list->items) {
      source.learned_from.push_back(read_learned_from(item, problems));
    }
  }
  if (const YamlNode* command = map.optional("command")) source.command = command->text;
  map.finish();
  if (map.is_sound() && source.kind == ParameterClass::Fit) {
    if (source.learned_from.empty()) {
      problems.error(from.key, fmt::format("source '{}' is a fit and says not to what", source.id),
                     "learned_from: [{scenario: NAME, ranks: [2], data: DIRECTORY}]");
    }
    if (source.command.empty()) {
      problems.error(from.key, fmt::format("source '{}' is a fit without its command", source.id),
                     "command: what finds the values again; where nothing does, they are assumed");
    }
  }
  return source;
}

}  // namespace

bool learned_from(const Source& source, const RegionFacts& region) {
  return std::ranges::any_of(source.learned_from, [&](const LearnedFrom& entry) {
    if (entry.scenario.empty()) return false;
    if (fnmatch(entry.scenario.c_str(), region.scenario.c_str(), 0) != 0) return false;
    if (!entry.ranks.empty() && std::ranges::count(entry.ranks, region.ranks) == 0) return false;
    if (entry.every_other && region.pass % 2 == 1) return false;
    return !entry.sizes || region.bytes == 0 ||
           (entry.sizes->least <= region.bytes && region.bytes <= entry.sizes->most);
  });
}

std::string_view class_name(ParameterClass kind) {
  return kClassWords[static_cast<std::size_t>(kind)];
}

std::string_view class_word(const Source& source) {
  return source.is_carried ? kCarried : class_name(source.kind);
}

std::vector<std::shared_ptr<const Source>> read_sources(const YamlNode& node, Problems& problems) {
  std::vector<std::shared_ptr<const Source>> sources;
  if (node.kind != YamlNode::Kind::Map) {
    problems.error(node, "sources: a map from ids to sources is needed",
                   "datasheet: {class: datasheet, text: its name}");
  }
  for (const YamlEntry& entry : node.entries) {
    sources.push_back(std::make_shared<const Source>(read_source(entry, problems)));
  }
  return sources;
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{}{}", bytes, units[unit]);
}

}  // namespace foretrace
