// `process_groups:`, what torch.distributed calls so: a communicator and an internal stream in
// each process, as ProcessGroupNCCL makes them; and the works that its operations give.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "scenarios/read/reader.h"

namespace foretrace {
namespace {

/// Ranks as torchrun numbers them: one GPU per process, or the GPUs of the only process.
std::uint32_t world_size(const Program& program) {
  return program.processes > 1 ? program.processes : program.devices;
}

std::vector<std::uint32_t> read_ranks(Reader& reader, const YamlNode* node) {
  std::vector<std::uint32_t> ranks(world_size(reader.program));
  std::iota(ranks.begin(), ranks.end(), 0U);
  if (node == nullptr) return ranks;
  if (node->kind != YamlNode::Kind::Sequence) {
    read_choice<bool>(reader, *node, "ranks", {{"all", true}});
    return ranks;
  }
  const auto last = std::int64_t{ranks.back()};
  ranks.clear();
  for (const YamlNode& item : node->items) {
    ranks.push_back(static_cast<std::uint32_t>(read_constant(reader, item, kNumber, 0, last)));
  }
  if (ranks.empty()) reader.problems.error(*node, "a process group has at least one rank");
  if (std::ranges::adjacent_find(ranks, std::greater_equal<>{}) != ranks.end()) {
    reader.problems.error(*node, "ranks are listed once each, in ascending order",
                          "torch sorts the ranks of a group");
  }
  return ranks;
}

/// The parts of a group that is split; torch sorts their ranks.
Split read_parts(Reader& reader, const YamlNode& node, const YamlNode* ranks) {
  if (ranks != nullptr) {
    reader.problems.error(*ranks, "either 'ranks' or 'split', not both");
  }
  if (reader.program.processes == 1) {
    reader.problems.error(node, "a process group is split among processes, and there is one",
                          "'ranks' lists GPUs of the only process");
  }
  if (node.kind == YamlNode::Kind::Map) {
    for (const YamlEntry& entry : node.entries) {
      if (entry.key.text != "key") continue;
      reader.problems.error(entry.key, "torch sorts the ranks of a group: it has no 'key'");
    }
  }
  return read_split(reader, node);
}

/// Lazy is torch's default. Warm-up passes initialise a lazy group before anything is measured.
bool read_is_lazy(Reader& reader, const YamlNode* node) {
  if (node == nullptr) return true;
  return read_choice<bool>(reader, *node, "way to initialise", {{"lazy", true}, {"eager", false}});
}

void read_process_group(Reader& reader, const YamlNode& key, const YamlNode& value) {
  Program& program = reader.program;
  if (reader.communicators.contains(key.text)) {
    reader.problems.error(key, fmt::format("'{}' names a communicator already", key.text));
  }
  MapReader map{value, "a process group", reader.problems};
  const YamlNode* split_node = map.optional("split");
  std::optional<Split> split;
  if (split_node != nullptr) split = read_parts(reader, *split_node, map.optional("ranks"));
  std::vector<std::uint32_t> ranks;
  if (!split) ranks = read_ranks(reader, map.optional("ranks"));
  const bool is_lazy = read_is_lazy(reader, map.optional("init"));
  map.finish();

  std::vector<std::vector<std::uint32_t>> parts{std::move(ranks)};
  if (split) parts = std::move(split->parts);
  auto [first, group] = add_process_group(program, key.text, parts, split.has_value(), is_lazy);
  Family family{first.value, {group.devices}, false, true};
  if (split) {
    family.own = split->color;
    reader.splits.insert(first.value);
  }
  reader.group_names[key.text] = std::move(family);
  reader.groups[first.value] = std::move(group);
}

}  // namespace

void read_process_groups(Reader& reader, const YamlNode* node) {
  for_each_declaration(reader, node, "process_groups", reader.group_names,
                       [&reader](const YamlNode& key, const YamlNode& value) {
                         read_process_group(reader, key, value);
                       });
}

std::string work_name(const YamlNode& node) {
  std::string name = node.text.substr(0, node.text.find('('));
  while (name.ends_with(' ')) name.pop_back();
  return name;
}

void report_works_never_given(Reader& reader) {
  const std::vector<std::string> known{reader.works_given.begin(), reader.works_given.end()};
  for (const YamlNode& node : reader.works_waited_for) {
    const std::string name = work_name(node);
    if (reader.works_given.contains(name)) continue;
    reader.problems.error(
        node, fmt::format("no operation gives the work '{}'", name),
        known.empty() ? "an operation with async: true and work: gives one" : suggest(name, known));
  }
}

}  // namespace foretrace
