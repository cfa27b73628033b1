// `process_groups:`, what torch.distributed calls so: a communicator and an internal stream in
// each process, as ProcessGroupNCCL makes them; and the works that its operations give.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

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

void add_streams(Program& program, const std::string& name, ProcessGroup& group) {
  group.first_stream = static_cast<std::uint32_t>(program.streams.size());
  for (std::uint32_t device = 0; device < group.devices; ++device) {
    program.streams.push_back(
        {fmt::format("{}.stream({})", name, device), device, StreamKind::NonBlocking, 0});
  }
}

void read_process_group(Reader& reader, const YamlNode& key, const YamlNode& value) {
  Program& program = reader.program;
  if (reader.communicators.contains(key.text)) {
    reader.problems.error(key, fmt::format("'{}' names a communicator already", key.text));
  }
  MapReader map{value, "a process group", reader.problems};
  ProcessGroup group;
  const YamlNode* split_node = map.optional("split");
  std::optional<Split> split;
  if (split_node != nullptr) split = read_parts(reader, *split_node, map.optional("ranks"));
  group.ranks = split ? split->parts.front() : read_ranks(reader, map.optional("ranks"));
  group.is_split = split.has_value();
  const bool is_lazy = read_is_lazy(reader, map.optional("init"));
  map.finish();

  const bool one_process = program.processes == 1;
  group.is_lazy = is_lazy;
  group.initialises = is_lazy && program.warmup == 0;
  group.devices = one_process ? program.devices : 1;
  add_streams(program, key.text, group);
  Communicator communicator{key.text, CommInit::Rank, {}};
  if (one_process) communicator.init = CommInit::All;
  if (group.initialises) communicator.init = CommInit::Op;
  const auto first = static_cast<std::uint32_t>(program.comms.size());
  const std::size_t parts = split ? split->parts.size() : 1;
  for (std::size_t part = 0; part < parts; ++part) {
    Communicator one = communicator;
    if (split) one.name = fmt::format("{}({})", key.text, part);
    for (const std::uint32_t rank : split ? split->parts[part] : group.ranks) {
      one.members.push_back(one_process ? RankPlace{0, rank} : RankPlace{rank, 0});
    }
    for (std::uint32_t device = 0; device < program.devices; ++device) {
      program.comms.push_back({static_cast<std::uint32_t>(program.communicators.size()), device});
    }
    program.communicators.push_back(std::move(one));
  }
  Family family{first, {group.devices}, false, true};
  if (split) {
    family.own = split->color;
    reader.splits.insert(first);
  }
  reader.group_names[key.text] = std::move(family);
  reader.groups[first] = std::move(group);
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
