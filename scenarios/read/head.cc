#include "scenarios/read/head.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/fabric/read.h"
#include "scenarios/fabric/text.h"
#include "scenarios/read/op_fields.h"
#include "scenarios/read/scenario.h"
#include "scenarios/base/values/quantity.h"

namespace foretrace {
namespace {

constexpr std::int64_t kMostProcesses = 100'000;
constexpr std::int64_t kMostDevices = 1024;  // per process
constexpr std::uint64_t kMostRanks = 131'072;

std::uint32_t read_count(Reader& reader, MapReader& map, std::string_view key, std::int64_t low,
                         std::int64_t high) {
  const YamlNode* node = map.optional(key);
  if (node == nullptr) return 1;
  return static_cast<std::uint32_t>(read_constant(reader, *node, kNumber, low, high));
}

/// The value of `key`, or the whole document where it is absent or empty.
const YamlNode& given(MapReader& map, std::string_view key) {
  const YamlNode* node = map.optional(key);
  return node != nullptr ? *node : map.node();
}

void read_who_runs(Reader& reader, MapReader& map) {
  constexpr std::int64_t kMostPasses = 1'000'000;
  Program& program = reader.program;
  program.nodes_follow = !map.has("nodes");
  program.nodes = read_count(reader, map, "nodes", 1, kMostProcesses);
  reader.constants["nodes"] = program.nodes;
  program.processes = read_count(reader, map, "processes", 1, kMostProcesses);
  reader.constants["processes"] = program.processes;
  if (map.has("processes")) {
    const auto [line, column] = given(map, "processes").place();
    program.processes_spot = {program.file, line, column};
  }
  program.devices = read_count(reader, map, "devices", 1, kMostDevices);
  reader.constants["devices"] = program.devices;
  program.warmup = read_count(reader, map, "warmup", 0, kMostPasses);
  if (std::uint64_t{program.processes} * program.devices > kMostRanks) {
    reader.problems.error(given(map, "devices"),
                          fmt::format("{} processes with {} devices each are more than {} GPUs",
                                      program.processes, program.devices, kMostRanks));
    program.processes = program.nodes;
    program.devices = 1;
  }
  if (program.processes % program.nodes != 0) {
    reader.problems.error(given(map, "processes"),
                          fmt::format("{} processes cannot be spread evenly over {} nodes",
                                      program.processes, program.nodes));
  }
}

/// Values of `fabric:` and `faults:` as anywhere in a scenario: with parameters.
void read_network(Reader& reader, MapReader& map) {
  const FabricValues values{
      [&reader](const YamlNode& node, Unit unit) -> std::optional<double> {
        const auto quantity = read_quantity(reader, node, describe(unit));
        if (!quantity) return {};
        return fabric_value(*quantity, unit, node, reader.problems);
      },
      [&reader](const YamlNode& node) { return read_word(reader, node, "this"); }};
  Program& program = reader.program;
  if (const YamlNode* node = map.optional("placement")) {
    program.placement = read_placement(*node, reader.problems, values);
  }
  if (const YamlNode* node = map.optional("fabric")) {
    program.fabric = read_fabric(*node, reader.problems, values);
  }
  if (const YamlNode* node = map.optional("faults")) {
    program.faults = read_faults(*node, reader.problems, values);
  }
  if (program.nodes_follow) return;
  for (const MachineFault& fault : program.faults) {
    if (fault.node.value_or(0) < program.nodes) continue;
    reader.problems.add(fault.line, fault.column, Severity::Error,
                        fmt::format("a fault of node {}: there are {}", *fault.node, program.nodes),
                        fmt::format("nodes are numbered 0 to {}", program.nodes - 1));
  }
}

/// `rule: documented` with its `source:`, or `rule: observed`; `tags: [A3, overlap]`.
void read_standing(Reader& reader, MapReader& map) {
  Program& program = reader.program;
  const YamlNode* rule = map.optional("rule");
  if (rule != nullptr) {
    program.rule =
        read_choice<std::string>(reader, *rule, "standing of a rule",
                                 {{"documented", "documented"}, {"observed", "observed"}});
  }
  if (const YamlNode* source = map.optional("source")) {
    program.source = source->text;
    if (rule == nullptr) {
      reader.problems.error(*source, "'source' says where a rule is documented: it needs 'rule'");
    }
  } else if (program.rule == "documented") {
    reader.problems.error(*rule, "a documented rule needs its 'source': document and section");
  }
  if (const YamlNode* gpu = map.optional("captured_on")) program.captured_on = gpu->text;
  const YamlNode* tags = map.optional("tags");
  if (tags == nullptr) return;
  if (tags->kind != YamlNode::Kind::Sequence) {
    reader.problems.error(*tags, "'tags' is a list of words: [overlap, copies]");
    return;
  }
  for (const YamlNode& tag : tags->items) {
    program.tags.push_back(read_word(reader, tag, "a tag"));
  }
}

void read_header(Reader& reader, MapReader& map) {
  if (const YamlNode* version = map.required("schema_version")) {
    if (version->text != "1") {
      reader.problems.error(*version, "this foretrace reads schema_version 1");
    }
  }
  if (const YamlNode* name = map.required("name")) {
    reader.program.name = read_word(reader, *name, "a scenario's name");
    if (reader.program.name == "." || reader.program.name == "..") {
      reader.problems.error(*name, fmt::format("'{}' names a directory, and results are written "
                                               "into one of the scenario's name",
                                               reader.program.name));
    }
  }
}

}  // namespace

std::string first_comment(std::string_view text) {
  if (!text.starts_with('#')) return {};
  auto line = text.substr(1, text.find('\n') - 1);
  while (!line.empty() && (line.front() == ' ' || line.front() == '#')) line.remove_prefix(1);
  while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
  return std::string{line};
}

void warn_of_unused_parameters(Reader& reader) {
  for (const auto& [name, parameter] : reader.parameters) {
    if (parameter.used) continue;
    reader.problems.warning(parameter.key, fmt::format("parameter '{}' is used nowhere", name));
  }
}

bool has_key(const YamlNode& root, std::string_view key) {
  return root.kind == YamlNode::Kind::Map &&
         std::ranges::any_of(root.entries,
                             [key](const YamlEntry& entry) { return entry.key.text == key; });
}

void read_head(Reader& reader, MapReader& map, const ParameterValues& parameters) {
  reader.domain = {{0}, {}};
  read_header(reader, map);
  read_standing(reader, map);
  read_parameters(reader, map.optional("parameters"), parameters);
  read_who_runs(reader, map);
  read_network(reader, map);
  read_environment(reader, map.optional("environment"));
}

}  // namespace foretrace
