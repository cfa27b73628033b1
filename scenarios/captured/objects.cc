#include "scenarios/captured/objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scenarios/base/text/errors.h"
#include "scenarios/program/renumber.h"

namespace foretrace::captured {
namespace {

/// In the order of their keys behind the first `kept`, which stay. Returns what each number
/// becomes.
template <class Object>
std::vector<std::uint32_t> sort_behind(std::size_t kept, std::vector<Object>& all,
                                       const std::map<std::uint32_t, std::uint32_t>& known) {
  std::vector<std::uint32_t> to(all.size());
  std::vector<Object> sorted;
  for (std::uint32_t i = 0; i < kept; ++i) {
    to[i] = i;
    sorted.push_back(std::move(all[i]));
  }
  for (const auto& [number, id] : known) {
    to[id] = static_cast<std::uint32_t>(sorted.size());
    sorted.push_back(std::move(all[id]));
  }
  all = std::move(sorted);
  return to;
}

}  // namespace

Objects::Objects(Program head, const SourceSpot& at, const Groups& groups)
    : program_{std::move(head)}, line_{at.line}, column_{at.column} {
  add_default_streams(program_);
  program_.barriers.push_back({});
  const auto add = [this](const char* name, MemoryKind memory, Contents contents = {}) {
    program_.buffers.push_back({.name = name, .memory = memory, .size = {}, .contents = contents});
  };
  add("operand_a", MemoryKind::Device, Contents::Normal);
  add("operand_b", MemoryKind::Device, Contents::Normal);
  for (const char* name : {"result", "copied", "copy"}) add(name, MemoryKind::Device);
  add("pinned", MemoryKind::Pinned);
  add("pageable", MemoryKind::Pageable);
  if (program_.processes > 1) {
    for (const char* name : {"part", "own", "whole", "gathered"}) add(name, MemoryKind::Device);
  }
  for (const auto& [name, ranks] : groups.members) {
    foretrace::Communicator one{name, CommInit::Rank, {}};
    for (const std::int64_t rank : ranks) {
      one.members.push_back({static_cast<std::uint32_t>(rank), 0});
    }
    const auto id = static_cast<std::uint32_t>(program_.communicators.size());
    comms_[name] = {static_cast<std::uint32_t>(program_.comms.size())};
    program_.comms.push_back({id, 0});
    program_.communicators.push_back(std::move(one));
  }
}

Op& Objects::add(Block& block, OpKind kind, std::string label) {
  block.push_back({OpId{program_.op_count++}, std::move(label), line_, column_, std::move(kind)});
  return block.back();
}

StreamRef Objects::stream(std::uint32_t number, int priority) {
  if (number == 0) return {};
  auto& all = program_.streams;
  const auto [at, is_new] = streams_.try_emplace(number, static_cast<std::uint32_t>(all.size()));
  if (is_new) all.push_back({fmt::format("s{}", number), 0, StreamKind::NonBlocking, 0});
  all[at->second].priority = std::clamp(priority, kHighestPriority, 0);
  return {StreamId{at->second}, {}};
}

EventRef Objects::event(std::uint32_t number) {
  auto& all = program_.events;
  const auto [at, is_new] = events_.try_emplace(number, static_cast<std::uint32_t>(all.size()));
  if (is_new) all.push_back({fmt::format("e{}", number), 0, false});
  return {EventId{at->second}, {}};
}

GraphRef Objects::graph(std::uint32_t number) {
  auto& all = program_.graphs;
  const auto [at, is_new] = graphs_.try_emplace(number, static_cast<std::uint32_t>(all.size()));
  if (is_new) all.push_back({fmt::format("g{}", number)});
  return {GraphId{at->second}, {}};
}

BufferRef Objects::buffer(std::string_view name) const {
  const auto found = std::ranges::find(program_.buffers, name, &Buffer::name);
  FORETRACE_CHECK(found != program_.buffers.end(), "collectives are of several ranks");
  return {{static_cast<std::uint32_t>(found - program_.buffers.begin())}, {}};
}

Program Objects::finish() {
  for (Buffer& buffer : program_.buffers) {
    const std::string& name = buffer.name;
    const std::int64_t bytes = name.starts_with("cop")                 ? device
                               : buffer.memory != MemoryKind::Device   ? host
                               : name == "part" || name == "own"       ? part
                               : name == "whole" || name == "gathered" ? whole
                                                                       : operand;
    buffer.size.count = static_cast<std::uint64_t>(bytes);
  }
  const NewNumbers numbers{
      .streams = sort_behind(std::size_t{2} * program_.devices, program_.streams, streams_),
      .events = sort_behind(0, program_.events, events_),
      .buffers = {},
      .graphs = sort_behind(0, program_.graphs, graphs_)};
  renumber(program_, numbers);
  return std::move(program_);
}

}  // namespace foretrace::captured
