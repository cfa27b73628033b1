#include "scenarios/captured/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scenarios/captured/calls.h"
#include "scenarios/check/check.h"

namespace foretrace::captured {
namespace {

constexpr std::uint64_t kTurns = 2, kSteps = 4;

/// Adds a block at the end, whose operations come next.
template <class Kind>
Block& add_block(Objects& objects, Block& block, Kind kind) {
  return std::get<Kind>(objects.add(block, std::move(kind)).kind).ops;
}

HostThread thread(const Party& party, std::size_t number, Objects& objects) {
  Calls calls{party, objects};
  HostThread made{fmt::format("main_{}", number), {party.ranks.begin(), party.ranks.end()}, {}};
  calls.graphs(made.ops);
  objects.add(made.ops, HostBarrier{});
  Block& turn = add_block(objects, made.ops, Repeat{kTurns, {}});
  const std::string& name = party.record->region;
  Block& region = add_block(objects, turn,
                            Region{.name = name.empty() ? "step" : name, .per = kSteps, .ops = {}});
  calls.step(add_block(objects, region, Repeat{kSteps, {}}));
  objects.add(region, DeviceSynchronize{});
  return made;
}

}  // namespace

Expansion expand(const CapturedStep& step, const Program& head, const SourceSpot& at) {
  Expansion made;
  const Groups groups = groups_of(step);
  Program program = head_of(head);
  program.processes = static_cast<std::uint32_t>(step.world);
  program.nodes = head.nodes;
  Objects objects{std::move(program), at, groups};
  for (const Party& party : groups.parties) {
    auto& threads = objects.program().threads;
    threads.push_back(thread(party, threads.size(), objects));
  }
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
  for (const auto& [what, times] : objects.left_out) {
    made.notes.push_back(fmt::format("not simulated: {} ({} in a step)", what, times));
  }
  made.program = objects.finish();
  if (!step.ranks.empty()) made.script_digest = step.ranks.front().record.script_digest;
  Problems problems{head.file};
  complete_program(made.program, problems);
  made.program.hash = hash_of(made.program);
  return made;
}

}  // namespace foretrace::captured
