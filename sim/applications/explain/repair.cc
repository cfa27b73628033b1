#include "sim/applications/explain/repair.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "models/what_if/what_if.h"
#include "scenarios/program/program_walk.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::explain {
namespace {

template <class... Kinds>
bool is_any_of(const OpKind& kind) {
  return (std::holds_alternative<Kinds>(kind) || ...);
}

Block* inner_block(OpKind& kind) { return const_cast<Block*>(block_of(kind)); }

/// Inside loops, what `is_one` says does nothing any more: operations keep their numbers, so it
/// becomes host work of no time, and a group of nothing else a loop of no turns.
template <class Test>
bool silence_in_loops(Block& block, bool in_loop, const Test& is_one) {
  bool any = false;
  for (Op& op : block) {
    if (in_loop && is_one(op.kind)) {
      op.kind = HostCompute{};
      any = true;
      continue;
    }
    if (auto* group = std::get_if<NcclGroup>(&op.kind); group != nullptr && in_loop) {
      if (!std::ranges::all_of(group->ops, [&](const Op& one) { return is_one(one.kind); }))
        continue;
      Block silent = std::move(group->ops);
      op.kind = Repeat{.times = 0, .ops = std::move(silent)};
      any = true;
      continue;
    }
    const bool loops = in_loop || std::holds_alternative<Repeat>(op.kind);
    if (Block* inner = inner_block(op.kind)) any |= silence_in_loops(*inner, loops, is_one);
  }
  return any;
}

template <class Test>
bool silence_in_loops(Program& program, const Test& is_one) {
  bool any = false;
  for (HostThread& thread : program.threads) any |= silence_in_loops(thread.ops, false, is_one);
  return any;
}

bool pin(Program& program) {
  bool any = false;
  for (Buffer& buffer : program.buffers) {
    if (buffer.memory != MemoryKind::Pageable && buffer.memory != MemoryKind::FreshPageable)
      continue;
    buffer.memory = MemoryKind::Pinned;
    any = true;
  }
  return any;
}

/// Of what takes the time that the program says.
DurationExpr* duration_of(Op& op) {
  if (auto* spin = std::get_if<Spin>(&op.kind)) return &spin->duration;
  if (auto* host = std::get_if<HostCompute>(&op.kind)) return &host->duration;
  return nullptr;
}

/// The durations of a thread in its order, and what it does besides, word for word.
struct Shape {
  std::string words;
  std::vector<DurationExpr*> durations;
};

void add_shape(Block& block, Shape& shape) {
  for (Op& op : block) {
    shape.words += std::to_string(op.kind.index()) + ' ';
    if (DurationExpr* duration = duration_of(op)) shape.durations.push_back(duration);
    if (Block* inner = inner_block(op.kind)) {
      shape.words += '(';
      add_shape(*inner, shape);
      shape.words += ')';
    }
  }
}

/// By a process's number; loop indices are 0.
Duration at_process(const DurationExpr& duration, std::uint32_t process) {
  const std::vector<std::int64_t> variables{process, 0, 0, 0, 0, 0, 0, 0};
  return duration.eval(Variables{variables});
}

bool level_stragglers(Program& program) {
  std::map<std::string, std::vector<std::pair<const HostThread*, Shape>>> alike;
  for (HostThread& thread : program.threads) {
    Shape shape;
    add_shape(thread.ops, shape);
    alike[shape.words].emplace_back(&thread, shape);
  }
  bool any = false;
  for (auto& [words, threads] : alike) {
    const std::size_t count = threads.front().second.durations.size();
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<std::pair<Duration, DurationExpr*>> all;
      for (auto& [thread, shape] : threads) {
        all.emplace_back(at_process(*shape.durations[i], thread->processes.front()),
                         shape.durations[i]);
      }
      const auto least =
          std::ranges::min_element(all, {}, [](const auto& one) { return one.first; });
      const DurationExpr shortest = *least->second;
      for (auto& [duration, expr] : all) {
        if (duration == least->first) continue;
        *expr = shortest;
        any = true;
      }
    }
  }
  return any;
}

bool speed_up(Machine& machine, const std::vector<std::string>& words) {
  bool any = false;
  for (const std::string& word : words) {
    try {
      apply_what_ifs(machine, {word + "=1000x"});
      any = true;
    } catch (const UsageError&) {  // a machine without it
    }
  }
  return any;
}

bool communicates(const Program& program) {
  return any_op(
      program, [](const Op& op) { return is_any_of<NcclCollective, NcclSend, NcclRecv>(op.kind); });
}

/// Whether a process has a peer: a link between GPUs may be what it waits for.
bool has_links(const Program& program) { return communicates(program) || program.devices > 1; }

bool forget_settings(Program& program) {
  return std::erase_if(program.environment, [](const auto& variable) {
           return variable.first.starts_with("NCCL_");
         }) > 0;
}

}  // namespace

std::string_view name_of(Cause cause) {
  switch (cause) {
    case Cause::Host:
      return "launch-bound host";
    case Cause::Synchronization:
      return "synchronization";
    case Cause::Copy:
      return "pageable copies";
    case Cause::Straggler:
      return "straggler";
    case Cause::Communication:
      return "communication";
    case Cause::Bubble:
      return "bubble";
  }
  return "";
}

std::string_view change_of(Cause cause) {
  switch (cause) {
    case Cause::Host:
      return "calls of the host take no time";
    case Cause::Synchronization:
      return "no waits of the host inside loops";
    case Cause::Copy:
      return "pinned memory instead of pageable";
    case Cause::Straggler:
      return "every process as fast as the fastest";
    case Cause::Communication:
      return "NCCL's own choice; where nothing is set, links that take no time";
    case Cause::Bubble:
      return "nobody waits for another stage";
  }
  return "";
}

bool take_away(Cause cause, Program& program, Machine& machine) {
  switch (cause) {
    case Cause::Host:
      return speed_up(machine, {"host"});
    case Cause::Synchronization:
      return silence_in_loops(program, [](const OpKind& kind) {
        return is_any_of<StreamSynchronize, DeviceSynchronize, EventSynchronize>(kind);
      });
    case Cause::Copy:
      return pin(program);
    case Cause::Straggler:
      return level_stragglers(program);
    case Cause::Communication: {
      if (!has_links(program)) return false;
      return forget_settings(program) || speed_up(machine, {"nvlink", "nic"});
    }
    case Cause::Bubble:
      return silence_in_loops(
          program, [](const OpKind& kind) { return is_any_of<NcclSend, NcclRecv>(kind); });
  }
  return false;
}

}  // namespace foretrace::explain
