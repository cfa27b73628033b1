#include "hw/check/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "hw/check/effects.h"
#include "hw/run/program_facts.h"

namespace foretrace::hw {
namespace {

/// More executions than this per thread: loops run a few times only, which checks every operation.
constexpr std::uint64_t kManyExecutions = 500;
constexpr std::uint64_t kShortLoop = 16;

/// One thing a host thread does: a call, or the calls of a group together.
struct Unit {
  std::vector<CheckCall> calls;
};

bool is_host_operation(const OpKind& kind) {
  return std::holds_alternative<HostCompute>(kind) || std::holds_alternative<HostSignal>(kind) ||
         std::holds_alternative<HostWait>(kind) || std::holds_alternative<FrameworkCall>(kind) ||
         std::holds_alternative<HostBarrier>(kind);
}

/// A host thread of a process, its loops and the launches of its graphs written out.
class ThreadScript {
 public:
  ThreadScript(const HostThread& thread, std::uint32_t index, std::uint32_t process,
               std::uint64_t loop_limit)
      : index_{index}, loop_limit_{loop_limit}, variables_{process} {
    write(thread.ops, 0);
  }
  std::deque<Unit> units;
  bool complete = true;  ///< false: it launches a graph that it did not capture itself

 private:
  /// What a launch of the graph does: the captured operations with the capture's loop indices.
  struct Capture {
    const Block* ops;
    std::uint64_t instance;
    std::vector<std::int64_t> variables;
  };

  void write(const Block& block, std::uint64_t instance) {
    for (const Op& op : block) {
      std::visit(Overloaded{
                     [&](const Repeat& repeat) { write_loop(repeat, instance); },
                     [&](const Region& region) { write(region.ops, instance); },
                     [&](const NcclGroup& group) { write_group(group, instance); },
                     [&](const GraphCapture& capture) { keep_capture(capture, instance); },
                     [&](const GraphLaunch& launch) { write_launch(launch); },
                     [&](const auto&) {
                       add({index_, &op, instance, variables_});
                     },
                 },
                 op.kind);
    }
  }
  void write_loop(const Repeat& repeat, std::uint64_t instance) {
    variables_.push_back(0);
    for (std::uint64_t i = 0; i < std::min(repeat.times, loop_limit_); ++i) {
      variables_.back() = static_cast<std::int64_t>(i);
      write(repeat.ops, instance * repeat.times + i);
    }
    variables_.pop_back();
  }
  void write_group(const NcclGroup& group, std::uint64_t instance) {
    if (++depth_ == 1) units.emplace_back();
    write(group.ops, instance);
    if (--depth_ == 0 && units.back().calls.empty()) units.pop_back();
  }
  void keep_capture(const GraphCapture& capture, std::uint64_t instance) {
    captures_.insert_or_assign(capture.graph.resolve(variables_),
                               Capture{&capture.ops, instance, variables_});
  }
  void write_launch(const GraphLaunch& launch) {
    const auto found = captures_.find(launch.graph.resolve(variables_));
    if (found == captures_.end()) {
      complete = false;
      return;
    }
    const auto here = std::exchange(variables_, found->second.variables);
    write(*found->second.ops, found->second.instance);
    variables_ = here;
  }
  void add(CheckCall call) {
    // NCCL's calls are issued when the group ends, the host's before.
    if (depth_ > 0 && is_host_operation(call.op->kind)) {
      units.insert(std::prev(units.end()), Unit{{std::move(call)}});
      return;
    }
    if (depth_ == 0) units.emplace_back();
    units.back().calls.push_back(std::move(call));
  }

  std::uint32_t index_;
  std::uint64_t loop_limit_;
  std::vector<std::int64_t> variables_;
  std::map<GraphId, Capture> captures_;
  int depth_ = 0;
};

/// Walks all threads of all processes until none can go on.
class Planner {
 public:
  explicit Planner(const Program& program) : program_{program}, memory_{program} {
    plan_.steps.resize(program.processes);
    for (std::uint32_t process = 0; process < program.processes; ++process) {
      for (const std::uint32_t thread : threads_of(program, process)) {
        const Block& ops = program.threads[thread].ops;
        const std::uint64_t limit =
            count_executions(ops) > kManyExecutions ? kShortLoop : ~std::uint64_t{0};
        runners_.push_back(
            {process, thread, {program.threads[thread], thread, process, limit}, {}});
      }
    }
  }

  CheckPlan plan() {
    for (const Runner& runner : runners_) {
      if (runner.script.complete) continue;
      return impossible(runner, "launches a graph that it did not capture");
    }
    for (bool moved = true; moved;) {
      moved = false;
      for (Runner& runner : runners_) moved |= advance(runner);
      moved |= complete_clusters();
    }
    for (const Runner& runner : runners_) {
      if (runner.script.units.empty()) continue;
      return impossible(runner, "would wait for ever");
    }
    plan_.results = memory_.results();
    plan_.expected = memory_.expected();
    return std::move(plan_);
  }

 private:
  struct Runner {
    std::uint32_t process;
    std::uint32_t thread;
    ThreadScript script;
    std::optional<std::vector<Meeting>> waits;  ///< for the other ranks of its NCCL calls
  };

  CheckPlan impossible(const Runner& runner, const std::string& why) const {
    CheckPlan plan;
    plan.possible = false;
    plan.why_not = fmt::format("process {}, thread {} {}", runner.process,
                               program_.threads[runner.thread].name, why);
    return plan;
  }

  /// As far as it goes without another thread; true when it did anything.
  bool advance(Runner& runner) {
    bool moved = false;
    while (!runner.script.units.empty() && !runner.waits && step(runner)) moved = true;
    return moved;
  }

  bool step(Runner& runner) {
    Unit& unit = runner.script.units.front();
    if (unit.calls.size() == 1) {
      const OpKind& kind = unit.calls.front().op->kind;
      if (const auto* barrier = std::get_if<HostBarrier>(&kind)) return pass(runner, *barrier);
      if (const auto* wait = std::get_if<HostWait>(&kind)) {
        auto& count = signals_[{runner.process, wait->signal.resolve(unit.calls[0].variables)}];
        if (count == 0) return false;
        --count;
      } else if (const auto* signal = std::get_if<HostSignal>(&kind)) {
        ++signals_[{runner.process, signal->signal.resolve(unit.calls[0].variables)}];
      } else if (const auto* function = std::get_if<HostFunc>(&kind);
                 function && function->signal) {
        // Its own wait holds a stream, and streams are not modelled: any order will do here.
        ++signals_[{runner.process, function->signal->resolve(unit.calls[0].variables)}];
      }
    }
    std::vector<Meeting> meetings;
    for (const CheckCall& call : unit.calls) {
      if (auto meeting = meetings_.join(program_, runner.process, call)) {
        meetings.push_back(*meeting);
      }
    }
    if (!meetings.empty()) {
      runner.waits = std::move(meetings);
      return true;
    }
    execute_together({&runner});
    return true;
  }

  /// Arrives, and goes on once everybody has.
  bool pass(Runner& runner, const HostBarrier& op) {
    auto& arrived = arrived_[op.barrier];
    arrived.insert({runner.process, runner.thread});
    if (arrived.size() < program_.barriers[op.barrier.value].parties.size()) return false;
    for (Runner& other : runners_) {
      if (!arrived.contains({other.process, other.thread})) continue;
      other.script.units.pop_front();
    }
    arrived.clear();
    return true;
  }

  /// Threads whose NCCL calls have all met form clusters that run together; true when any did.
  bool complete_clusters() {
    bool moved = false;
    for (Runner& runner : runners_) {
      if (!runner.waits) continue;
      std::vector<Runner*> cluster;
      if (!gather(runner, cluster)) continue;
      execute_together(cluster);
      moved = true;
    }
    return moved;
  }

  /// Everybody whom `first` meets, and whom they meet; false when somebody is not there yet.
  bool gather(Runner& first, std::vector<Runner*>& cluster) {
    cluster = {&first};
    std::set<Meeting> met;
    for (std::size_t i = 0; i < cluster.size(); ++i) {
      for (const Meeting& meeting : *cluster[i]->waits) {
        if (!meetings_.is_full(program_, meeting)) return false;
        if (!met.insert(meeting).second) continue;
        for (Runner& other : runners_) {
          const bool comes =
              other.waits && std::ranges::find(*other.waits, meeting) != other.waits->end();
          if (comes && std::ranges::find(cluster, &other) == cluster.end()) {
            cluster.push_back(&other);
          }
        }
      }
    }
    return true;
  }

  void execute_together(const std::vector<Runner*>& cluster) {
    std::map<std::uint32_t, CheckStep> steps;  // by process
    std::vector<ProcessCall> calls;
    for (Runner* runner : cluster) {
      for (CheckCall& call : runner->script.units.front().calls) {
        if (!is_executed(call.op->kind)) continue;
        calls.push_back({runner->process, call});
        steps[runner->process].calls.push_back(std::move(call));
      }
      runner->script.units.pop_front();
      runner->waits.reset();
    }
    memory_.apply(calls, steps);
    for (auto& [process, step] : steps) plan_.steps[process].push_back(std::move(step));
  }

  const Program& program_;
  CheckPlan plan_;
  std::vector<Runner> runners_;
  Meetings meetings_;
  ModelMemory memory_;
  std::map<std::pair<std::uint32_t, SignalId>, std::uint64_t> signals_;
  std::map<BarrierId, std::set<std::pair<std::uint32_t, std::uint32_t>>> arrived_;
};

}  // namespace

std::uint32_t pattern_seed(std::uint32_t process, BufferId buffer) {
  return 1 + buffer.value + 4096 * process;
}

CheckPlan plan_check(const Program& program) { return Planner{program}.plan(); }

std::string summary_of(const CheckPlan& plan) {
  if (!plan.possible) return "not checked: " + plan.why_not;
  return fmt::format(
      "{} of {} results of copies, sets, elementwise sums, reductions and collectives, each "
      "operation on its own",
      plan.expected, plan.results);
}

}  // namespace foretrace::hw
