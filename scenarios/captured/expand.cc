#include "scenarios/captured/expand.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "scenarios/captured/calls_text.h"

namespace foretrace::captured {
namespace {

constexpr int kTurns = 2, kSteps = 4;

std::string objects(const Named& named, const Groups& groups, std::int64_t world) {
  std::string text;
  if (!named.streams.empty()) text += "streams:\n";
  for (const auto& [stream, priority] : named.streams) {
    text += fmt::format("  s{}: {{flags: non_blocking{}}}\n", stream,
                        priority == 0 ? "" : fmt::format(", priority: {}", priority));
  }
  if (!named.events.empty()) text += "events:\n";
  for (const std::uint32_t event : named.events)
    text += fmt::format("  e{}: {{timing: false}}\n", event);
  if (!named.graphs.empty()) text += "graphs:\n";
  for (const std::uint32_t graph : named.graphs) text += fmt::format("  g{}: {{}}\n", graph);
  text += "buffers:                                      # what operations name\n";
  for (const char* buffer : {"operand_a", "operand_b"}) {
    text += fmt::format("  {}: {{memory: device, size: {}B, contents: normal}}\n", buffer,
                        named.operand);
  }
  text += fmt::format("  result: {{memory: device, size: {}B}}\n", named.operand);
  for (const char* buffer : {"copied", "copy"})
    text += fmt::format("  {}: {{memory: device, size: {}B}}\n", buffer, named.device);
  for (const char* memory : {"pinned", "pageable"})
    text += fmt::format("  {0}: {{memory: {0}, size: {1}B}}\n", memory, named.host);
  if (world > 1) {
    for (const char* buffer : {"part", "own"})
      text += fmt::format("  {}: {{memory: device, size: {}B}}\n", buffer, named.part);
    for (const char* buffer : {"whole", "gathered"})
      text += fmt::format("  {}: {{memory: device, size: {}B}}\n", buffer, named.whole);
  }
  if (!groups.members.empty()) text += "communicators:\n";
  for (const auto& [name, ranks] : groups.members) {
    if (static_cast<std::int64_t>(ranks.size()) == world) {
      text += fmt::format("  {}: {{members: all_devices, init: rank}}\n", name);
      continue;
    }
    std::vector<std::string> members;
    for (const std::int64_t rank : ranks) members.push_back(fmt::format("[{}, 0]", rank));
    text += fmt::format("  {}: {{members: [{}], init: rank}}\n", name, fmt::join(members, ", "));
  }
  return text;
}

std::string thread(const Party& party, std::size_t number, Named& named) {
  CallsText calls{party, named};
  std::string text = fmt::format("  main_{}:\n    processes: [{}]\n    ops:\n", number,
                                 fmt::join(party.ranks, ", "));
  text += calls.graphs(6);
  text += "      - host_barrier: {}\n";
  text += fmt::format("      - repeat:\n          times: {}\n          ops:\n          - region:\n",
                      kTurns);
  const std::string region = party.record->region.empty() ? "step" : party.record->region;
  text += fmt::format(
      "              name: {}\n              per: {}\n              ops:\n              - "
      "repeat:\n                  times: {}\n                  ops:\n",
      region, kSteps, kSteps);
  text += calls.step(18);
  text += "              - device_synchronize: {}\n";
  return text;
}

}  // namespace

Expansion expand(const CapturedStep& step) {
  Expansion made;
  const Groups groups = groups_of(step);
  Named named;
  std::string threads = "threads:\n";
  std::size_t number = 0;
  for (const Party& party : groups.parties) threads += thread(party, number++, named);
  made.text =
      fmt::format("processes: {}\n", step.world) + objects(named, groups, step.world) + threads;
  for (const RankRecord& one : step.ranks) {
    for (const std::string& assumption : one.record.assumptions) {
      if (std::ranges::find(made.notes, assumption) == made.notes.end())
        made.notes.push_back(assumption);
    }
    if (!one.record.memory) continue;
    made.memory.allocated_peak =
        std::max(made.memory.allocated_peak, one.record.memory->allocated_peak);
    made.memory.reserved_peak =
        std::max(made.memory.reserved_peak, one.record.memory->reserved_peak);
    made.memory.first_peak = std::max(made.memory.first_peak, one.record.memory->first_peak);
  }
  for (const auto& [what, times] : named.left_out) {
    made.notes.push_back(fmt::format("not simulated: {} ({} in a step)", what, times));
  }
  return made;
}

}  // namespace foretrace::captured
