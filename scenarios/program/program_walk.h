// The one walk over a program's blocks. The executors run through them with time of their own; the
// order oracle (scenarios/check/order_walk.h) walks for itself on purpose; all others walk here.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "scenarios/program/op_facts.h"
#include "scenarios/program/program.h"

namespace foretrace {

/// More executions than this of one operation, or of all of a thread together, count as so many.
/// Scenarios whose loops run more often together are refused where they are read.
inline constexpr std::uint64_t kMostExecutions = std::uint64_t{1} << 62;

/// The blocks around an operation, outermost first.
using Around = std::span<const Op* const>;

template <class Kind>
bool is_inside(Around around) {
  return std::ranges::any_of(
      around, [](const Op* block) { return std::holds_alternative<Kind>(block->kind); });
}

/// The loops among them, outermost first: each has an index.
std::vector<const Op*> loops_of(Around around);

/// a * b, or kMostExecutions.
std::uint64_t times_capped(std::uint64_t a, std::uint64_t b);

/// How often something inside these blocks is executed in one run of its thread.
std::uint64_t executions(Around around);

/// How often the operations that are no blocks are executed, all together.
std::uint64_t count_executions(const Block& block);

/// Nothing but loops, and regions where `in_regions`: running it takes no time and calls nothing,
/// however often. Loops of it are not gone around.
bool is_void(const Block& block, bool in_regions);

namespace detail {
template <class Visit>
void walk(const Block& block, std::vector<const Op*>& around, const Visit& visit) {
  for (const Op& op : block) {
    if constexpr (std::invocable<const Visit&, const Op&, Around>) {
      visit(op, Around{around});
    } else {
      visit(op);
    }
    const Block* inner = block_of(op.kind);
    if (inner == nullptr) continue;
    around.push_back(&op);
    walk(*inner, around, visit);
    around.pop_back();
  }
}
}  // namespace detail

/// Calls `visit(const Op&, Around)` or `visit(const Op&)` for each operation once, blocks before
/// what is inside them.
template <class Visit>
void for_each_op(const Block& block, const Visit& visit) {
  std::vector<const Op*> around;
  detail::walk(block, around, visit);
}

/// Of all threads: `visit(const HostThread&, const Op&, Around)`.
template <class Visit>
void for_each_op(const Program& program, const Visit& visit) {
  for (const HostThread& thread : program.threads) {
    for_each_op(thread.ops, [&](const Op& op, Around around) { visit(thread, op, around); });
  }
}

/// Whether `is_one(const Op&)` of any operation.
template <class Test>
bool any_op(const Block& block, const Test& is_one) {
  bool found = false;
  for_each_op(block, [&](const Op& op) { found = found || is_one(op); });
  return found;
}
template <class Test>
bool any_op(const Program& program, const Test& is_one) {
  return std::ranges::any_of(program.threads,
                             [&](const HostThread& thread) { return any_op(thread.ops, is_one); });
}

/// What a thread of a process executes, one after the other, with its loop indices.
class ExecutionWalk {
 public:
  /// Leaves out blocks of which `enters(const Block&)` says so.
  template <class Enters, class Visit>
  void run(const Block& block, std::uint32_t process, const Enters& enters, const Visit& visit) {
    variables_ = {process};
    around_.clear();
    stopped_ = false;
    walk(block, enters, visit);
  }

 private:
  /// `visit(const Op&, Variables, Around)` returns false to stop.
  template <class Enters, class Visit>
  void walk(const Block& block, const Enters& enters, const Visit& visit) {
    for (const Op& op : block) {
      if (stopped_) return;
      const Block* inner = block_of(op.kind);
      if (inner == nullptr) {
        stopped_ = !visit(op, Variables{variables_}, Around{around_});
      } else if (enters(*inner) && !is_void(*inner, true)) {
        enter(op, *inner, enters, visit);
      }
    }
  }
  template <class Enters, class Visit>
  void enter(const Op& op, const Block& inner, const Enters& enters, const Visit& visit) {
    const auto* repeat = std::get_if<Repeat>(&op.kind);
    around_.push_back(&op);
    if (repeat == nullptr) {
      walk(inner, enters, visit);
    } else {
      variables_.push_back(0);
      for (std::uint64_t i = 0; i < repeat->times && !stopped_; ++i) {
        variables_.back() = static_cast<std::int64_t>(i);
        walk(inner, enters, visit);
      }
      variables_.pop_back();
    }
    around_.pop_back();
  }

  std::vector<std::int64_t> variables_;  ///< process, then loop indices
  std::vector<const Op*> around_;
  bool stopped_ = false;
};

}  // namespace foretrace
