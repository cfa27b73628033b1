// Streams, events, buffers, communicators and signals.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include "scenarios/read/reader.h"

namespace foretrace {
namespace {

constexpr std::int64_t kMostObjects =
    1'000'000;  // of one kind; each takes memory on every executor

/// Where one family's members stand: their names and devices, in the order of their ids.
struct Member {
  std::string name;
  std::uint32_t device{};
};

/// Reads count, each and device of one declaration and lists its members.
std::vector<Member> read_members(Reader& reader, MapReader& map, const YamlNode& key,
                                 std::string_view what, std::size_t existing, Family& family) {
  const std::int64_t devices = reader.program.devices;
  const YamlNode* each = map.optional("each");
  const YamlNode* count = map.optional("count");
  const YamlNode* device = map.optional("device");
  std::int64_t per_device = 1;
  if (each != nullptr) {
    read_choice<bool>(reader, *each, "value of each", {{"device", true}});
    family.extents.push_back(reader.program.devices);
  }
  if (count != nullptr) {
    per_device = read_constant(reader, *count, kNumber, 1, kMostObjects);
    family.extents.push_back(static_cast<std::uint32_t>(per_device));
  }
  if (each != nullptr && device != nullptr) {
    reader.problems.error(*device, "either 'device' or 'each: device', not both");
  }
  const auto home =
      device == nullptr
          ? std::uint32_t{0}
          : static_cast<std::uint32_t>(read_constant(reader, *device, kNumber, 0, devices - 1));
  const std::int64_t rows = each == nullptr ? 1 : devices;
  if (rows * per_device + static_cast<std::int64_t>(existing) > kMostObjects) {
    reader.problems.error(key, fmt::format("more than {} {}s", kMostObjects, what));
    return {};
  }
  family.first = static_cast<std::uint32_t>(existing);
  std::vector<Member> members;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t k = 0; k < per_device; ++k) {
      std::string index = each == nullptr ? "" : std::to_string(row);
      if (count != nullptr) index += (index.empty() ? "" : ", ") + std::to_string(k);
      members.push_back({index.empty() ? key.text : fmt::format("{}({})", key.text, index),
                         each == nullptr ? home : static_cast<std::uint32_t>(row)});
    }
  }
  return members;
}

/// The streams that are always there, by the names that they have without an index, too.
void name_default_streams(Reader& reader) {
  const std::uint32_t devices = reader.program.devices;
  add_default_streams(reader.program);
  reader.streams["current"] = reader.streams["default"] = {0, {devices}, false, true};
  reader.streams["per_thread"] = {devices, {devices}, false, true};
}

/// As cudaStreamCreateWithPriority takes it: clamped.
int read_priority(Reader& reader, const YamlNode& node) {
  using Limits = std::numeric_limits<int>;
  const std::size_t errors_before = reader.problems.error_count();
  const auto given =
      static_cast<int>(read_constant(reader, node, kNumber, Limits::min(), Limits::max(),
                                     fmt::format("a number from {} to 0", kHighestPriority)));
  const int taken = std::clamp(given, kHighestPriority, 0);
  if (taken != given && reader.problems.error_count() == errors_before) {
    reader.problems.warning(
        node,
        fmt::format("priority {} is not in CUDA's range, {} to 0: CUDA takes {}", given,
                    kHighestPriority, taken),
        fmt::format("a lower one goes first, and streams beyond the range are as those at its end: "
                    "say {}",
                    taken));
  }
  return taken;
}

/// Of all communicators together, as said in the error at `node`.
bool has_too_many_members(Reader& reader, const YamlNode& node, std::uint64_t more) {
  constexpr std::uint64_t kMostMembers = std::uint64_t{1} << 22;
  std::uint64_t members = more;
  for (const Communicator& other : reader.program.communicators) members += other.members.size();
  if (members <= kMostMembers) return false;
  reader.problems.error(
      node, fmt::format("more than {} members of all communicators together", kMostMembers));
  return true;
}

void read_member_list(Reader& reader, const YamlNode& node, Communicator& communicator) {
  if (has_too_many_members(reader, node, node.items.size())) return;
  std::set<RankPlace> seen;
  for (const YamlNode& item : node.items) {
    if (item.kind != YamlNode::Kind::Sequence || item.items.size() != 2) {
      reader.problems.error(item, "a member is a pair [process, device]");
      continue;
    }
    const auto process = read_constant(reader, item.items[0], kNumber, 0,
                                       std::int64_t{reader.program.processes} - 1);
    const auto device =
        read_constant(reader, item.items[1], kNumber, 0, std::int64_t{reader.program.devices} - 1);
    const RankPlace place{static_cast<std::uint32_t>(process), static_cast<std::uint32_t>(device)};
    if (!seen.insert(place).second) {
      reader.problems.error(
          item, fmt::format("device {} of process {} is a member already", device, process));
      continue;
    }
    communicator.members.push_back(place);
  }
}

void read_all_devices(Reader& reader, const YamlNode& node, Communicator& communicator) {
  read_choice<bool>(reader, node, "members", {{"all_devices", true}});
  const std::uint64_t ranks = std::uint64_t{reader.program.processes} * reader.program.devices;
  if (has_too_many_members(reader, node, ranks)) return;
  for (std::uint32_t process = 0; process < reader.program.processes; ++process) {
    for (std::uint32_t device = 0; device < reader.program.devices; ++device) {
      communicator.members.push_back({process, device});
    }
  }
}

/// One communicator, or one for each part of a split, with a handle for each device.
void add_communicators(Reader& reader, const YamlNode& key, const Communicator& communicator,
                       const Split* split) {
  Program& program = reader.program;
  const auto first = static_cast<std::uint32_t>(program.comms.size());
  Family family{first, {program.devices}, false, true};
  const std::size_t parts = split == nullptr ? 1 : split->parts.size();
  if (split != nullptr) {
    family.own = split->color;
    reader.splits.insert(first);
  }
  for (std::size_t part = 0; part < parts; ++part) {
    for (std::uint32_t device = 0; device < program.devices; ++device) {
      program.comms.push_back({static_cast<std::uint32_t>(program.communicators.size()), device});
    }
    Communicator one = communicator;
    if (split != nullptr) {
      one.name = fmt::format("{}({})", key.text, part);
      for (const std::uint32_t process : split->parts[part]) {
        for (std::uint32_t device = 0; device < program.devices; ++device) {
          one.members.push_back({process, device});
        }
      }
    }
    program.communicators.push_back(std::move(one));
  }
  reader.communicators[key.text] = std::move(family);
}

void read_communicator(Reader& reader, const YamlNode& key, const YamlNode& value) {
  Program& program = reader.program;
  MapReader map{value, "a communicator", reader.problems};
  Communicator communicator{key.text, program.processes == 1 ? CommInit::All : CommInit::Rank, {}};
  const YamlNode* split_node = map.optional("split");
  std::optional<Split> split;
  if (split_node != nullptr) {
    if (const YamlNode* members = map.optional("members")) {
      reader.problems.error(*members, "either 'members' or 'split', not both");
    }
    const std::uint64_t ranks = std::uint64_t{program.processes} * program.devices;
    if (!has_too_many_members(reader, *split_node, ranks)) split = read_split(reader, *split_node);
  } else if (const YamlNode* members = map.required("members")) {
    if (members->kind == YamlNode::Kind::Sequence) {
      read_member_list(reader, *members, communicator);
    } else {
      read_all_devices(reader, *members, communicator);
    }
  }
  if (const YamlNode* init = map.optional("init")) {
    communicator.init = read_choice<CommInit>(
        reader, *init, "way to initialise",
        {{"all", CommInit::All}, {"rank", CommInit::Rank}, {"op", CommInit::Op}});
    if (communicator.init == CommInit::All && program.processes != 1) {
      reader.problems.error(
          *init, fmt::format("init: all needs one process, and there are {}", program.processes),
          "ncclCommInitAll cannot reach other processes; use init: rank");
    }
  }
  map.finish();
  add_communicators(reader, key, communicator, split ? &*split : nullptr);
}

/// Of each member of a family: `index` of count, `device` of each: device mean something here.
std::vector<std::uint64_t> read_sizes(Reader& reader, const YamlNode& node, bool by_device,
                                      std::size_t members, const Family& family) {
  VariableDomain domain{{0}, {}};
  for (std::size_t i = 0; i < family.extents.size(); ++i) {
    const bool is_device = by_device && i == 0;
    domain.loops.push_back({is_device ? "device" : "index", std::int64_t{family.extents[i]}});
  }
  std::swap(reader.domain, domain);
  const Expr size = read_expr(reader, node, kSize, 1, kNoLimit);
  std::swap(reader.domain, domain);
  if (size.is_constant()) {
    return std::vector<std::uint64_t>(members, static_cast<std::uint64_t>(size.constant()));
  }
  std::vector<std::uint64_t> sizes;
  const std::uint32_t last = family.extents.empty() ? 1 : family.extents.back();
  for (std::uint32_t i = 0; i < members; ++i) {
    std::vector<std::int64_t> variables{0};
    if (family.extents.size() > 1) variables.push_back(i / last);
    if (!family.extents.empty()) variables.push_back(i % last);
    sizes.push_back(static_cast<std::uint64_t>(size.eval(variables)));
  }
  return sizes;
}

void read_buffer(Reader& reader, const YamlNode& key, const YamlNode& value) {
  MapReader map{value, "a buffer", reader.problems};
  Buffer buffer;
  if (const YamlNode* memory = map.required("memory")) {
    struct Memory {
      MemoryKind kind = MemoryKind::Device;
      bool by_nccl = false;
    };
    const auto read = read_choice<Memory>(reader, *memory, "kind of memory",
                                          {{"device", {}},
                                           {"nccl", {MemoryKind::Device, true}},
                                           {"pinned", {MemoryKind::Pinned}},
                                           {"pageable", {MemoryKind::Pageable}},
                                           {"fresh_pageable", {MemoryKind::FreshPageable}}});
    buffer.memory = read.kind;
    buffer.by_nccl = read.by_nccl;
  }
  const YamlNode* size = map.required("size");
  if (const YamlNode* contents = map.optional("contents")) {
    buffer.contents = read_choice<Contents>(
        reader, *contents, "contents",
        {{"random", Contents::Random}, {"zeros", Contents::Zeros}, {"normal", Contents::Normal}});
  }
  if (buffer.memory != MemoryKind::Device && map.has("device")) {
    reader.problems.error(value, "host memory has no device", "leave 'device' out");
  }
  Family family;
  auto& all = reader.program.buffers;
  std::vector<Member> members = read_members(reader, map, key, "buffer", all.size(), family);
  const std::vector<std::uint64_t> sizes =
      size == nullptr ? std::vector<std::uint64_t>(members.size(), 1)
                      : read_sizes(reader, *size, map.has("each"), members.size(), family);
  for (std::size_t i = 0; i < members.size(); ++i) {
    buffer.name = std::move(members[i].name);
    buffer.device = members[i].device;
    buffer.size.count = sizes.at(i);
    all.push_back(buffer);
  }
  if (std::ranges::adjacent_find(sizes, std::not_equal_to<>{}) != sizes.end()) {
    reader.uneven[family.first] = static_cast<std::uint32_t>(sizes.size());
  }
  map.finish();
  reader.buffers[key.text] = std::move(family);
}

/// A family that needs no more than its names.
template <class Object>
void read_plain_objects(Reader& reader, const YamlNode* node, const std::string& section,
                        std::string_view what, Families& families, std::vector<Object>& all) {
  for_each_declaration(
      reader, node, section, families, [&](const YamlNode& key, const YamlNode& value) {
        MapReader map{value, fmt::format("a {}", what), reader.problems};
        Family family;
        for (Member& member : read_members(reader, map, key, what, all.size(), family)) {
          all.push_back({std::move(member.name)});
        }
        map.finish();
        families[key.text] = std::move(family);
      });
}

}  // namespace

void for_each_declaration(
    Reader& reader, const YamlNode* node, const std::string& section, Families& families,
    const std::function<void(const YamlNode& key, const YamlNode& value)>& read) {
  if (node == nullptr) return;
  MapReader map{*node, section, reader.problems};
  for (const YamlEntry& entry : node->entries) {
    if (is_name(entry.key.text)) {
      const std::size_t errors_before = reader.problems.error_count();
      read(entry.key, entry.value);
      families[entry.key.text].is_broken = reader.problems.error_count() > errors_before;
    } else {
      reader.problems.error(entry.key, fmt::format("'{}' cannot be a name", entry.key.text),
                            "a letter, then letters, digits and '_'");
    }
  }
}

void read_streams(Reader& reader, const YamlNode* node) {
  name_default_streams(reader);
  for_each_declaration(
      reader, node, "streams", reader.streams,
      [&reader](const YamlNode& key, const YamlNode& value) {
        if (reader.streams.contains(key.text)) {
          reader.problems.error(key,
                                fmt::format("'{}' names a stream that is always there", key.text));
          return;
        }
        MapReader map{value, "a stream", reader.problems};
        Stream stream;
        if (const YamlNode* flags = map.optional("flags")) {
          stream.kind = read_choice<StreamKind>(
              reader, *flags, "stream flag",
              {{"blocking", StreamKind::Blocking}, {"non_blocking", StreamKind::NonBlocking}});
        }
        if (const YamlNode* priority = map.optional("priority")) {
          stream.priority = read_priority(reader, *priority);
        }
        Family family;
        auto& all = reader.program.streams;
        for (Member& member : read_members(reader, map, key, "stream", all.size(), family)) {
          all.push_back({std::move(member.name), member.device, stream.kind, stream.priority});
        }
        map.finish();
        reader.streams[key.text] = std::move(family);
      });
}

void read_events(Reader& reader, const YamlNode* node) {
  for_each_declaration(
      reader, node, "events", reader.events, [&reader](const YamlNode& key, const YamlNode& value) {
        MapReader map{value, "an event", reader.problems};
        bool timing = true;
        if (const YamlNode* flag = map.optional("timing")) {
          timing = read_flag(reader, *flag, "timing");
        }
        Family family;
        auto& all = reader.program.events;
        for (Member& member : read_members(reader, map, key, "event", all.size(), family)) {
          all.push_back({std::move(member.name), member.device, timing});
        }
        map.finish();
        reader.events[key.text] = std::move(family);
      });
}

void read_buffers(Reader& reader, const YamlNode* node) {
  for_each_declaration(
      reader, node, "buffers", reader.buffers,
      [&reader](const YamlNode& key, const YamlNode& value) { read_buffer(reader, key, value); });
}

void read_communicators(Reader& reader, const YamlNode* node) {
  for_each_declaration(reader, node, "communicators", reader.communicators,
                       [&reader](const YamlNode& key, const YamlNode& value) {
                         read_communicator(reader, key, value);
                       });
}

void read_signals(Reader& reader, const YamlNode* node) {
  read_plain_objects(reader, node, "signals", "signal", reader.signals, reader.program.signals);
}

void read_graphs(Reader& reader, const YamlNode* node) {
  read_plain_objects(reader, node, "graphs", "graph", reader.graphs, reader.program.graphs);
}

}  // namespace foretrace
