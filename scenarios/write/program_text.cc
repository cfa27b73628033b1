#include "scenarios/write/program_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "scenarios/fabric/text.h"
#include "scenarios/program/program_walk.h"
#include "scenarios/write/op_text.h"

namespace foretrace {
namespace {

/// A line for each variable: their values may have commas.
std::string environment_text(const Program& program) {
  if (program.environment.empty()) return {};
  std::string text = "environment:\n";
  for (const auto& [name, value] : program.environment) {
    text += fmt::format("  {}: {}\n", name, value);
  }
  return text;
}

std::string who_runs(const Program& program) {
  std::string text;
  if (!program.nodes_follow) text += fmt::format("nodes: {}\n", program.nodes);
  text += fmt::format("processes: {}\n", program.processes);
  if (program.devices != 1) text += fmt::format("devices: {}\n", program.devices);
  if (program.warmup != 1) text += fmt::format("warmup: {}\n", program.warmup);
  return text;
}

/// `title` above the lines; nothing without lines.
std::string section(const char* title, const std::string& lines) {
  return lines.empty() ? lines : fmt::format("{}:\n{}", title, lines);
}

/// Objects that a file declares: those that a process group or a call brings have other characters
/// in their names.
bool is_declared(const std::string& name) { return name.find_first_of(".(") == std::string::npos; }

std::string streams(const Program& program) {
  std::string lines;
  for (std::size_t i = std::size_t{2} * program.devices; i < program.streams.size(); ++i) {
    const Stream& stream = program.streams[i];
    if (!is_declared(stream.name)) continue;
    const bool blocks = stream.kind == StreamKind::Blocking;
    lines +=
        fmt::format("  {}: {{flags: {}{}}}\n", stream.name, blocks ? "blocking" : "non_blocking",
                    stream.priority == 0 ? "" : fmt::format(", priority: {}", stream.priority));
  }
  return section("streams", lines);
}

/// Works are declared by the calls that give them.
std::string events(const Program& program) {
  std::set<std::uint32_t> named;
  for_each_op(program, [&](const HostThread&, const Op& op, Around) {
    if (op.lowered) return;
    const OpFacts facts = op_facts(op.kind);
    if (facts.event_recorded != nullptr) named.insert(facts.event_recorded->first.value);
    for (const EventRef* event : facts.events_waited_for) named.insert(event->first.value);
    if (const auto* query = std::get_if<EventQuery>(&op.kind))
      named.insert(query->event.first.value);
  });
  std::string lines;
  for (const std::uint32_t event : named) {
    lines += fmt::format("  {}: {{timing: {}}}\n", program.events[event].name,
                         program.events[event].timing);
  }
  return section("events", lines);
}

std::string_view memory_word(const Buffer& buffer) {
  switch (buffer.memory) {
    case MemoryKind::Device:
      return buffer.by_nccl ? "nccl" : "device";
    case MemoryKind::Pinned:
      return "pinned";
    case MemoryKind::Pageable:
      return "pageable";
    case MemoryKind::FreshPageable:
      return "fresh_pageable";
  }
  return {};
}

std::string buffers(const Program& program) {
  std::string lines;
  for (const Buffer& buffer : program.buffers) {
    if (!is_declared(buffer.name)) continue;
    const char* contents = buffer.contents == Contents::Normal  ? ", contents: normal"
                           : buffer.contents == Contents::Zeros ? ", contents: zeros"
                                                                : "";
    lines += fmt::format("  {}: {{memory: {}, size: {}B{}}}\n", buffer.name, memory_word(buffer),
                         buffer.size.count, contents);
  }
  return section("buffers", lines);
}

std::string graphs(const Program& program) {
  std::string lines;
  for (const auto& graph : program.graphs) lines += fmt::format("  {}: {{}}\n", graph.name);
  return section("graphs", lines);
}

/// Whether the communicator is a process group's, which has streams of its own.
bool is_group(const Program& program, const Communicator& communicator) {
  const std::string name = fmt::format("{}.stream(0)", communicator.name);
  return std::ranges::find(program.streams, name, &Stream::name) != program.streams.end();
}

std::string communicators(const Program& program, bool of_groups) {
  std::string lines;
  for (const Communicator& one : program.communicators) {
    if (is_group(program, one) != of_groups) continue;
    const bool has_all = one.members.size() == program.processes;
    std::vector<std::string> members;
    for (const RankPlace& member : one.members) {
      if (has_all) break;
      members.push_back(of_groups ? std::to_string(member.process)
                                  : fmt::format("[{}, {}]", member.process, member.device));
    }
    const std::string list = fmt::format("[{}]", fmt::join(members, ", "));
    lines += of_groups ? fmt::format("  {}: {{ranks: {}, init: eager}}\n", one.name,
                                     has_all ? "all" : list)
                       : fmt::format("  {}: {{members: {}, init: rank}}\n", one.name,
                                     has_all ? "all_devices" : list);
  }
  return section(of_groups ? "process_groups" : "communicators", lines);
}

std::string threads(const Program& program) {
  std::string text = "threads:\n";
  for (const HostThread& thread : program.threads) {
    text += fmt::format("  {}:\n", thread.name);
    if (thread.processes.size() < program.processes) {
      text += fmt::format("    processes: [{}]\n", fmt::join(thread.processes, ", "));
    }
    text += "    ops:\n";
    append_ops(text, program, thread.ops, 6);
  }
  return text;
}

/// What a scenario of the program begins with.
std::string head_text(const Program& program) {
  std::string text =
      fmt::format("# {}\nschema_version: 1\nname: {}\n",
                  program.summary.empty() ? program.name : program.summary, program.name);
  if (!program.tags.empty()) text += fmt::format("tags: [{}]\n", fmt::join(program.tags, ", "));
  return text + network_text(program) + environment_text(program);
}

}  // namespace

std::string network_text(const Program& program) {
  std::string text;
  if (program.placement != Placement::Nodewise) {
    text += fmt::format("placement: {}\n", placement_text(program.placement));
  }
  if (program.fabric) text += fmt::format("fabric: {}\n", fabric_text(*program.fabric));
  if (!program.faults.empty()) text += fmt::format("faults: {}\n", faults_text(program.faults));
  return text;
}

std::string scenario_text(const Program& program) {
  return head_text(program) + who_runs(program) + streams(program) + events(program) +
         buffers(program) + communicators(program, false) + graphs(program) +
         communicators(program, true) + threads(program);
}

}  // namespace foretrace
