// Buffers that the program allocates and frees: used before, used after, allocated or freed twice.
// Every host thread's calls are walked as far as kMostWalked allows. Where several threads of a
// process allocate and free a buffer, their order is not written in the file: lifetimes_order.cc.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "scenarios/base/values/range_check.h"
#include "scenarios/check/check.h"
#include "scenarios/program/program_walk.h"

namespace foretrace {
namespace {

constexpr std::uint64_t kMostFound = std::uint64_t{1} << 20;  // allocations and frees, by iteration

bool makes_or_frees(const Op& op) { return allocates(op.kind) || frees(op.kind); }

class LifetimeCheck {
 public:
  LifetimeCheck(const Program& program, Problems& problems)
      : program_{program}, problems_{problems} {}

  void run() {
    for (std::uint32_t t = 0; t < program_.threads.size(); ++t) find_owners(t);
    if (left_to_find_ == 0) return;  // somebody may free what is not known
    for (std::uint32_t t = 0; t < program_.threads.size(); ++t) {
      for (const std::uint32_t process : program_.threads[t].processes) walk(t, process);
    }
  }

 private:
  /// The one thread whose calls decide whether the buffer is there; none: several, or a graph's.
  using Owner = std::optional<std::uint32_t>;
  /// Of a buffer at one place of its owner's text.
  struct Life {
    bool is_allocated = false;
    const Op* last = nullptr;                      ///< that allocated or freed it
    std::optional<std::uint32_t> freed_in_stream;  ///< by free_async
  };

  void find_owners(std::uint32_t thread) {
    static const Expr kOfProcess = *Expr::from_postfix({{Expr::Op::Variable, 0}});
    const HostThread& text = program_.threads[thread];
    for_each_op(text.ops, [&](const Op& op, Around around) {
      if (!makes_or_frees(op)) return;
      const BufferRef& memory = *op_facts(op.kind).memory;
      const Owner mine = is_inside<GraphCapture>(around) ? Owner{} : Owner{thread};
      VariableDomain domain{text.processes, {}};
      for (const Op* loop : loops_of(around)) {
        domain.loops.push_back({{}, static_cast<std::int64_t>(std::get<Repeat>(loop->kind).times)});
      }
      for_each_assignment(domain, {&memory.index, &kOfProcess}, left_to_find_, [&](Variables v) {
        --left_to_find_;
        const std::pair key{static_cast<std::uint32_t>(v[0]), id_of(memory, v)};
        const auto [owner, is_new] = owners_.emplace(key, mine);
        if (owner->second != mine) owner->second = std::nullopt;
        return true;
      });
    });
  }

  void walk(std::uint32_t thread, std::uint32_t process) {
    lives_.clear();
    std::uint64_t left = std::min(kMostWalked, left_of_all_);
    if (left == 0) return;
    left_of_all_ -= left;
    ExecutionWalk{}.run(
        program_.threads[thread].ops, process, [](const Block&) { return true; },
        [&](const Op& op, Variables v, Around) {
          if (left == 0) return false;
          --left;
          look_at(op, v, thread, process);
          return true;
        });
    left_of_all_ += left;
  }

  void look_at(const Op& op, Variables v, std::uint32_t thread, std::uint32_t process) {
    if (!makes_or_frees(op)) {
      for (const BufferRef* ref : buffers_used(op.kind)) {
        const std::uint32_t buffer = id_of(*ref, v);
        if (is_judged(buffer, thread, process)) use(op, buffer, v);
      }
      return;
    }
    const std::uint32_t buffer = id_of(*op_facts(op.kind).memory, v);
    if (!is_judged(buffer, thread, process)) return;
    if (allocates(op.kind)) {
      allocate(op, buffer);
    } else {
      free(op, buffer, v);
    }
  }

  /// Also what no thread of the process allocates, and another process does.
  bool is_judged(std::uint32_t buffer, std::uint32_t thread, std::uint32_t process) const {
    const auto owner = owners_.find({process, buffer});
    if (owner == owners_.end()) return program_.buffers[buffer].allocated_by_program;
    return owner->second == thread;
  }

  Life& life_of(std::uint32_t buffer) {
    return lives_.emplace(buffer, Life{!program_.buffers[buffer].allocated_by_program, nullptr, {}})
        .first->second;
  }

  void allocate(const Op& op, std::uint32_t buffer) {
    Life& life = life_of(buffer);
    if (life.is_allocated && life.last != nullptr) {
      report(op,
             fmt::format("buffer '{}' is allocated here again: {} did it, and nothing freed it "
                         "since",
                         name_of(buffer), last_place(*life.last, op)),
             "free it first, or declare a buffer for each");
    }
    life = {true, &op, {}};
  }

  void free(const Op& op, std::uint32_t buffer, Variables v) {
    Life& life = life_of(buffer);
    if (!life.is_allocated) {
      const bool never = life.last == nullptr;
      report(op,
             never ? fmt::format("buffer '{}' is freed here before anything allocates it",
                                 name_of(buffer))
                   : fmt::format("buffer '{}' is freed here again: {} did it", name_of(buffer),
                                 last_place(*life.last, op)),
             never ? "" : "free it once for each time that it is allocated");
    } else if (!program_.buffers[buffer].allocated_by_program && program_.warmup > 0) {
      report(op,
             fmt::format("buffer '{}' is freed here, and no operation allocates it: the next pass "
                         "would not have it",
                         name_of(buffer)),
             fmt::format("{} it first: what an operation allocates is not there before the run",
                         std::holds_alternative<Free>(op.kind)        ? "malloc"
                         : std::holds_alternative<FreeAsync>(op.kind) ? "malloc_async"
                                                                      : "host_alloc"));
    }
    life = {false, &op, {}};
    if (const auto* in_stream = std::get_if<FreeAsync>(&op.kind)) {
      life.freed_in_stream = in_stream->stream.resolve(v).value;
    }
  }

  /// Memory that is freed in a stream is there until then: what other streams do with it may still
  /// come before, as far as is known here.
  void use(const Op& op, std::uint32_t buffer, Variables v) {
    const Life& life = life_of(buffer);
    if (life.is_allocated) return;
    if (life.last == nullptr) {
      report(op,
             fmt::format("buffer '{}' is used here before anything allocates it", name_of(buffer)),
             "move its allocation before this, or leave that out: what no operation allocates is "
             "there before the run");
      return;
    }
    const StreamRef* stream = op_facts(op.kind).stream;
    if (life.freed_in_stream &&
        (stream == nullptr || stream->resolve(v).value != *life.freed_in_stream)) {
      return;
    }
    report(op,
           fmt::format("buffer '{}' is used here, and {} freed it", name_of(buffer),
                       last_place(*life.last, op)),
           "free it behind its last use");
  }

  const std::string& name_of(std::uint32_t buffer) const { return program_.buffers[buffer].name; }
  /// "line 12", or of the operation itself "an earlier iteration".
  static std::string last_place(const Op& last, const Op& now) {
    return &last == &now ? "an earlier iteration" : place_of(last, now);
  }
  static std::uint32_t id_of(const BufferRef& ref, Variables v) { return ref.resolve(v).value; }

  /// Loops and processes run the same line: it is said once.
  void report(const Op& op, std::string message, std::string hint) {
    if (!said_.insert(&op).second) return;
    problems_.add(op.line, op.column, Severity::Error, std::move(message), std::move(hint));
  }

  const Program& program_;
  Problems& problems_;
  std::uint64_t left_to_find_ = kMostFound;
  std::uint64_t left_of_all_ = kMostWalkedOfAll;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Owner> owners_;  ///< by process and buffer
  std::map<std::uint32_t, Life> lives_;  ///< by buffer, of the thread that is walked
  std::set<const Op*> said_;
};

}  // namespace

void check_lifetimes(const Program& program, Problems& problems) {
  if (!any_op(program, makes_or_frees)) return;
  LifetimeCheck{program, problems}.run();
}

}  // namespace foretrace
