#include "scenarios/program/program_walk.h"

namespace foretrace {

std::vector<const Op*> loops_of(Around around) {
  std::vector<const Op*> loops;
  for (const Op* block : around) {
    if (std::holds_alternative<Repeat>(block->kind)) loops.push_back(block);
  }
  return loops;
}

std::uint64_t times_capped(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  const bool overflows = __builtin_mul_overflow(a, b, &product);
  return overflows ? kMostExecutions : std::min(product, kMostExecutions);
}

std::uint64_t executions(Around around) {
  std::uint64_t times = 1;
  for (const Op* block : around) {
    if (const auto* loop = std::get_if<Repeat>(&block->kind))
      times = times_capped(times, loop->times);
  }
  return times;
}

std::uint64_t count_executions(const Block& block) {
  std::uint64_t total = 0;
  for_each_op(block, [&](const Op& op, Around around) {
    if (block_of(op.kind) == nullptr) total = std::min(total + executions(around), kMostExecutions);
  });
  return total;
}

bool is_void(const Block& block, bool in_regions) {
  return std::ranges::all_of(block, [in_regions](const Op& op) {
    if (const auto* repeat = std::get_if<Repeat>(&op.kind)) {
      return repeat->times == 0 || is_void(repeat->ops, in_regions);
    }
    const auto* region = std::get_if<Region>(&op.kind);
    return in_regions && region != nullptr && is_void(region->ops, in_regions);
  });
}

}  // namespace foretrace
