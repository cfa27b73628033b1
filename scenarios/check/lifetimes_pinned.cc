// Pageable buffers that are pinned by host_register and unpinned by host_unregister: CUDA refuses
// to pin what is pinned, and to unpin what is not. What one thread of a process does with a buffer
// is followed in its order; of several threads only what is wrong in any order is told. Each
// thread's calls are walked as far as kMostWalked allows.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "scenarios/check/check.h"
#include "scenarios/program/program_walk.h"

namespace foretrace {
namespace {

bool pins(const Op& op) { return std::holds_alternative<HostRegister>(op.kind); }
bool unpins(const Op& op) { return std::holds_alternative<HostUnregister>(op.kind); }

bool has_pinning(const Block& block) {
  return any_op(block, [](const Op& op) { return pins(op) || unpins(op); });
}

/// An operation that comes at the wrong time, and the one before it that makes it wrong.
struct Mistimed {
  const Op* op{};
  const Op* before{};
};

/// What the threads of one process do with one buffer.
struct Pinning {
  const HostThread* thread{};  ///< the first that does
  bool is_shared = false;      ///< another one, too
  std::uint64_t pins = 0, unpins = 0;
  const Op* pinned = nullptr;  ///< by this one, in the order of the first thread
  const Op* last_unpin = nullptr;
  Mistimed in_order{};    ///< the first wrong one in that order
  Mistimed second_pin{};  ///< whatever the order, where nothing unpins
};

class PinnedCheck {
 public:
  PinnedCheck(const Program& program, Problems& problems)
      : program_{program}, problems_{problems} {}

  void run() {
    for (const HostThread& thread : program_.threads) {
      if (!has_pinning(thread.ops)) continue;
      for (const std::uint32_t process : thread.processes) walk(thread, process);
    }
    for (const auto& [key, pinning] : pinnings_) tell(BufferId{key.second}, pinning);
  }

 private:
  void walk(const HostThread& thread, std::uint32_t process) {
    std::uint64_t left = std::min(kMostWalked, left_of_all_);
    if (left == 0) return;
    left_of_all_ -= left;
    ExecutionWalk{}.run(thread.ops, process, has_pinning, [&](const Op& op, Variables v, Around) {
      if (pins(op) || unpins(op)) note(thread, process, op, op_facts(op.kind).memory->resolve(v));
      return --left > 0;
    });
    is_complete_ = is_complete_ && left > 0;
    left_of_all_ += left;
  }

  void note(const HostThread& thread, std::uint32_t process, const Op& op, BufferId buffer) {
    Pinning& of = pinnings_[{process, buffer.value}];
    if (of.thread == nullptr) of.thread = &thread;
    of.is_shared = of.is_shared || of.thread != &thread;
    const bool is_pin = pins(op);
    if (is_pin && of.pins == 0) of.second_pin.before = &op;
    if (is_pin && of.pins == 1) of.second_pin.op = &op;
    ++(is_pin ? of.pins : of.unpins);
    const bool is_wrong = is_pin == (of.pinned != nullptr);
    if (is_wrong && of.in_order.op == nullptr) {
      of.in_order = {&op, is_pin ? of.pinned : of.last_unpin};
    }
    of.pinned = is_pin ? &op : nullptr;
    if (!is_pin) of.last_unpin = &op;
  }

  void tell(BufferId buffer, const Pinning& of) {
    if (!of.is_shared) return tell(buffer, of.in_order);
    if (of.unpins == 0) return tell(buffer, of.second_pin);
    // In any order one more may be pinned than unpinned, and none unpinned that is not pinned.
    if (is_complete_ && of.unpins > of.pins) tell(buffer, {of.last_unpin, nullptr});
  }

  void tell(BufferId buffer, const Mistimed& wrong) {
    // Loops and processes run the same line: it is said once.
    if (wrong.op == nullptr || !said_.insert(wrong.op).second) return;
    const std::string& name = program_.buffers[buffer.value].name;
    const Op& op = *wrong.op;
    const auto before = [&] {
      return wrong.before == wrong.op ? std::string{"an earlier iteration"}
                                      : place_of(*wrong.before, op);
    };
    if (pins(op)) {
      return refuse(op,
                    fmt::format("buffer '{}' is registered here again: {} did it, and that lasts "
                                "until host_unregister or the end of the pass",
                                name, before()),
                    "register it once, before the loop, or host_unregister it in between");
    }
    refuse(op,
           wrong.before == nullptr
               ? fmt::format("buffer '{}' is unregistered here, and it is not registered", name)
               : fmt::format("buffer '{}' is unregistered here again: {} did it", name, before()),
           "host_register it before, once for each time that it is unregistered");
  }

  void refuse(const Op& op, std::string message, std::string hint) {
    problems_.add(op.line, op.column, Severity::Error, std::move(message), std::move(hint));
  }

  const Program& program_;
  Problems& problems_;
  std::uint64_t left_of_all_ = kMostWalkedOfAll;
  bool is_complete_ = true;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Pinning> pinnings_;  ///< by process and buffer
  std::set<const Op*> said_;
};

}  // namespace

void check_pinned(const Program& program, Problems& problems) {
  if (!any_op(program, [](const Op& op) { return pins(op) || unpins(op); })) return;
  PinnedCheck{program, problems}.run();
}

}  // namespace foretrace
