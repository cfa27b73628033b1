// Buffers that the program allocates and frees, where the order of one host thread's calls does not
// tell: used inside graphs, by other threads, by other streams behind free_async. An error is what
// holds however fast each thread is: the free is before the use, and no allocation may lie between.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "scenarios/check/check.h"
#include "scenarios/program/op_facts.h"
#include "scenarios/program/program_walk.h"

namespace foretrace {
namespace {

// Comparisons: of one buffer, and of all. The first takes less than a second.
constexpr std::uint64_t kMostOfABuffer = 1'000'000'000;
constexpr std::uint64_t kMostOfAll = 3'000'000'000;

bool concerns_memory(const Op& op) { return allocates(op.kind) || frees(op.kind); }

/// Of one buffer of a process.
struct MemoryEvent {
  const Op* op{};
  std::uint32_t call{};    ///< the host's call; of a graph's operation its launch
  std::uint32_t access{};  ///< the entry of a stream; of what the host does, the call
};

struct MemoryUses {
  std::vector<MemoryEvent> allocations, frees, uses;
  std::set<std::uint32_t> threads;
  bool is_in_graph = false;  ///< used by one; none allocates or frees: no capture may
  bool is_freed_in_stream = false;
};

class OrderedLifetimes {
 public:
  OrderedLifetimes(const Program& program, const HappensBefore& order, Problems& problems)
      : program_{program}, index_{index_ops(program)}, order_{order}, problems_{problems} {}

  void run() {
    for (const auto& [call, entries] : entries_of_calls()) {
      note(order_.nodes[call].call, call, call);
      for (const std::uint32_t entry : entries) {
        const OrderNode& node = order_.nodes[entry];
        for (std::uint32_t i = 0; i < node.work_count; ++i) {
          note(order_.work[node.first_work + i], call, entry);
        }
      }
    }
    for (const auto& [key, memory] : memory_) {
      if (memory.allocations.empty() && memory.frees.empty()) continue;
      const bool is_told_by_one_thread =
          memory.threads.size() == 1 && !memory.is_in_graph && !memory.is_freed_in_stream;
      if (is_told_by_one_thread) continue;
      look_at(program_.buffers[key.second], memory);
    }
  }

 private:
  std::map<std::uint32_t, std::vector<std::uint32_t>> entries_of_calls() const {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> host_lanes;
    for (std::uint32_t lane = 0; lane < order_.lanes.size(); ++lane) {
      const OrderLane& one = order_.lanes[lane];
      if (!one.stream) host_lanes.emplace(std::pair{one.process, one.thread}, lane);
    }
    std::map<std::uint32_t, std::vector<std::uint32_t>> entries;
    for (std::uint32_t node = 0; node < order_.nodes.size(); ++node) {
      if (!order_.is_device(node)) {
        entries[node];
        continue;
      }
      const OrderLane& lane = order_.lanes[order_.nodes[node].lane];
      const OrderLane& host = order_.lanes[host_lanes.at({lane.process, lane.thread})];
      entries[host.nodes[order_.nodes[node].issued - 1]].push_back(node);
    }
    return entries;
  }

  /// What a call does is seen at the call, and again at the entry that it makes: that one counts.
  void note(const ExecutedOp& executed, std::uint32_t call, std::uint32_t access) {
    const Op& op = *executed.op;
    const bool is_memory = concerns_memory(op);
    const std::vector<const BufferRef*> used = buffers_used(op.kind);
    if (!is_memory && used.empty()) return;
    const std::uint32_t process = order_.nodes[call].process;
    const std::vector<std::int64_t> variables = variables_of(index_, executed, process);
    const bool is_graphs = std::holds_alternative<GraphLaunch>(order_.nodes[call].call.op->kind);
    const auto add = [&](const BufferRef& ref) -> MemoryUses& {
      MemoryUses& memory = memory_[{process, ref.resolve(variables).value}];
      memory.threads.insert(order_.lanes[order_.nodes[call].lane].thread);
      return memory;
    };
    const auto put = [&](std::vector<MemoryEvent>& into) {
      if (!into.empty() && into.back().op == &op && into.back().call == call) {
        into.back().access = access;
      } else {
        into.push_back({&op, call, access});
      }
    };
    for (const BufferRef* ref : used) {
      MemoryUses& memory = add(*ref);
      memory.is_in_graph = memory.is_in_graph || is_graphs;
      put(memory.uses);
    }
    if (!is_memory) return;
    MemoryUses& memory = add(*op_facts(op.kind).memory);
    const bool in_stream = std::holds_alternative<FreeAsync>(op.kind);
    memory.is_freed_in_stream = memory.is_freed_in_stream || in_stream;
    put(allocates(op.kind) ? memory.allocations : memory.frees);
  }

  void look_at(const Buffer& buffer, const MemoryUses& memory) {
    const std::uint64_t changes = memory.allocations.size() + memory.frees.size();
    const std::uint64_t held = (memory.uses.size() + changes) * changes * changes;
    if (held > std::min(kMostOfABuffer, left_)) return note_too_many(buffer, memory);
    left_ -= held;
    for (const MemoryEvent& use : memory.uses) look_at_use(buffer, memory, use);
    for (const MemoryEvent& free : memory.frees) look_at_free(buffer, memory, free);
    for (const MemoryEvent& made : memory.allocations) look_at_allocation(buffer, memory, made);
  }

  void note_too_many(const Buffer& buffer, const MemoryUses& memory) {
    const Op& op = *(memory.allocations.empty() ? memory.frees : memory.allocations).front().op;
    if (!said_.insert(&op).second) return;
    problems_.add(op.line, op.column, Severity::Note,
                  fmt::format("whether buffer '{}' is used, freed and allocated in turn was not "
                              "looked at: {} operations do it",
                              buffer.name,
                              memory.uses.size() + memory.frees.size() + memory.allocations.size()),
                  "fewer turns of its loop show what many do");
  }

  void look_at_use(const Buffer& buffer, const MemoryUses& memory, const MemoryEvent& use) {
    if (is_before_all(use, memory.allocations, buffer)) {
      report(*use.op,
             fmt::format("buffer '{}' is used here{} before anything allocates it", buffer.name,
                         in_graph(use)),
             "move its allocation before this");
    }
    for (const MemoryEvent& free : memory.frees) {
      if (!order_.is_ordered(free.access, use.access)) continue;
      if (may_be_between(free, memory.allocations, use)) continue;
      return report(*use.op,
                    fmt::format("buffer '{}' is used here{}, and {} freed it", buffer.name,
                                in_graph(use), place_of(*free.op, *use.op)),
                    "free it behind its last use");
    }
  }

  void look_at_free(const Buffer& buffer, const MemoryUses& memory, const MemoryEvent& free) {
    if (is_before_all(free, memory.allocations, buffer)) {
      report(*free.op,
             fmt::format("buffer '{}' is freed here before anything allocates it", buffer.name),
             "");
    }
    for (const MemoryEvent& first : memory.frees) {
      if (!order_.is_ordered(first.call, free.call)) continue;
      if (may_be_between(first, memory.allocations, free)) continue;
      return report(*free.op,
                    fmt::format("buffer '{}' is freed here again: {} did it", buffer.name,
                                place_of(*first.op, *free.op)),
                    "free it once for each time that it is allocated");
    }
  }

  void look_at_allocation(const Buffer& buffer, const MemoryUses& memory, const MemoryEvent& made) {
    for (const MemoryEvent& first : memory.allocations) {
      if (!order_.is_ordered(first.call, made.call)) continue;
      if (may_be_between(first, memory.frees, made)) continue;
      return report(*made.op,
                    fmt::format("buffer '{}' is allocated here again: {} did it, and nothing "
                                "freed it since",
                                buffer.name, place_of(*first.op, *made.op)),
                    "free it first, or declare a buffer for each");
    }
  }

  bool is_before_all(const MemoryEvent& one, const std::vector<MemoryEvent>& allocations,
                     const Buffer& buffer) const {
    return buffer.allocated_by_program && !allocations.empty() &&
           std::ranges::all_of(allocations, [&](const MemoryEvent& made) {
             return order_.is_ordered(one.call, made.call);
           });
  }

  /// Calls that are neither before `first` nor after `second` for certain.
  bool may_be_between(const MemoryEvent& first, const std::vector<MemoryEvent>& calls,
                      const MemoryEvent& second) const {
    return std::ranges::any_of(calls, [&](const MemoryEvent& one) {
      return !order_.is_ordered(one.call, first.call) && !order_.is_ordered(second.call, one.call);
    });
  }

  std::string in_graph(const MemoryEvent& use) const {
    const Op& call = *order_.nodes[use.call].call.op;
    if (!std::holds_alternative<GraphLaunch>(call.kind)) return "";
    return fmt::format(", in the graph that line {} launches", call.line);
  }

  /// Loops and processes run the same line: it is said once.
  void report(const Op& op, std::string message, std::string hint) {
    if (!said_.insert(&op).second) return;
    problems_.add(op.line, op.column, Severity::Error, std::move(message), std::move(hint));
  }

  const Program& program_;
  std::vector<OpInfo> index_;
  const HappensBefore& order_;
  Problems& problems_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, MemoryUses> memory_;  ///< process, buffer
  std::uint64_t left_ = kMostOfAll;
  std::set<const Op*> said_;
};

/// Whether more than one thread of a process, a graph, or a stream that frees takes part.
bool needs_order(const Program& program) {
  std::set<std::uint32_t> processes;
  for (const HostThread& thread : program.threads) {
    for (const std::uint32_t process : thread.processes) {
      if (!processes.insert(process).second) return true;
    }
  }
  return any_op(program, [](const Op& op) {
    return std::holds_alternative<GraphCapture>(op.kind) ||
           std::holds_alternative<FreeAsync>(op.kind);
  });
}

}  // namespace

void check_lifetimes_in_order(const Program& program, Problems& problems) {
  if (!any_op(program, concerns_memory) || !needs_order(program)) return;
  const HappensBefore order = happens_before(program);
  if (!order.is_finished) return;  // what never comes to its turn may have allocated or freed
  OrderedLifetimes{program, order, problems}.run();
}

}  // namespace foretrace
