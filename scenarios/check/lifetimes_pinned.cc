// Pageable buffers that are pinned by host_register: nothing undoes that before the pass ends, so a
// second time is refused by CUDA, in whatever order the threads of a process come to it. Each
// thread's calls are walked as far as kMostPinning allows.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "scenarios/check/check.h"
#include "scenarios/program/program_walk.h"

namespace foretrace {
namespace {

constexpr std::uint64_t kMostPinning = 400'000;         // operations of one thread of one process
constexpr std::uint64_t kMostPinningOfAll = 4'000'000;  // of all of them

bool pins(const Op& op) { return std::holds_alternative<HostRegister>(op.kind); }

bool has_pinning(const Block& block) { return any_op(block, pins); }

class PinnedCheck {
 public:
  PinnedCheck(const Program& program, Problems& problems)
      : program_{program}, problems_{problems} {}

  void run() {
    for (const HostThread& thread : program_.threads) {
      if (!has_pinning(thread.ops)) continue;
      for (const std::uint32_t process : thread.processes) walk(thread, process);
    }
  }

 private:
  void walk(const HostThread& thread, std::uint32_t process) {
    std::uint64_t left = std::min(kMostPinning, left_of_all_);
    if (left == 0) return;
    left_of_all_ -= left;
    ExecutionWalk{}.run(thread.ops, process, has_pinning, [&](const Op& op, Variables v, Around) {
      if (pins(op)) pin(op, process, std::get<HostRegister>(op.kind).buffer.resolve(v));
      return --left > 0;
    });
    left_of_all_ += left;
  }

  void pin(const Op& op, std::uint32_t process, BufferId buffer) {
    const auto [first, is_new] = pinned_by_.emplace(std::pair{process, buffer.value}, &op);
    // Loops and processes run the same line: it is said once.
    if (is_new || !said_.insert(&op).second) return;
    const Op& before = *first->second;
    problems_.add(op.line, op.column, Severity::Error,
                  fmt::format("buffer '{}' is registered here again: {} did it, and that lasts "
                              "until the pass ends",
                              program_.buffers[buffer.value].name,
                              &before == &op ? "an earlier iteration" : place_of(before, op)),
                  "register it once, before the loop, or declare a buffer for each");
  }

  const Program& program_;
  Problems& problems_;
  std::uint64_t left_of_all_ = kMostPinningOfAll;
  std::map<std::pair<std::uint32_t, std::uint32_t>, const Op*> pinned_by_;  ///< process, buffer
  std::set<const Op*> said_;
};

}  // namespace

void check_pinned(const Program& program, Problems& problems) {
  if (!any_op(program, pins)) return;
  PinnedCheck{program, problems}.run();
}

}  // namespace foretrace
