// What regions issue, and whether their host thread waits for any of it before they end.
#include <algorithm>

#include "scenarios/check/order_walk.h"

namespace foretrace {

/// The thread knows by now.
bool OrderWalk::has_ended_for(const Thread& thread, std::uint32_t node) const {
  const OrderNode& entry = graph_.node(node);
  return thread.clock[entry.lane] >= entry.position;
}

/// What ended between two executions was waited for outside.
void OrderWalk::begin_region(Thread& thread, const Op& region) {
  thread.regions.push_back(&region);
  RegionWork& work = thread.region_work[&region];
  work.begin = graph_.node_count();
  const auto is_over = [&](const auto& one) { return has_ended_for(thread, one.second); };
  if (std::erase_if(work.behind, is_over) > 0) std::erase_if(work.calls_behind, is_over);
}

void OrderWalk::note_in_regions(Thread& thread, std::uint32_t entry) {
  const OrderNode& added = graph_.node(entry);
  for (const Op* region : thread.regions) {
    RegionWork& work = thread.region_work[region];
    work.first = std::min(work.first, entry);
    work.behind.emplace(added.lane, entry);
    work.calls_behind.emplace(std::pair{added.call.op, added.lane}, entry);
  }
}

/// A call has returned that waited for something. Where an execution waits for the work of the one
/// before, the device paces it, and what it leaves behind counts in the next. A loop within one
/// execution has no next: what its last turn leaves behind counts nowhere.
void OrderWalk::note_wait_in_regions(Thread& thread) {
  const auto is_over = [&](const auto& one) { return has_ended_for(thread, one.second); };
  for (const Op* region : thread.regions) {
    RegionWork& work = thread.region_work[region];
    if (std::ranges::none_of(work.behind, is_over)) continue;
    work.has_waited = true;
    for (const auto& one : work.calls_behind) {
      const bool is_earlier = one.second < work.begin;
      if (is_earlier && is_over(one)) work.waited_later.insert(one.first.first);
    }
    work.behind.clear();
    work.calls_behind.clear();
  }
}

std::vector<UnwaitedRegion> OrderWalk::unwaited_regions() const {
  std::vector<UnwaitedRegion> unwaited;
  for (const Thread& thread : threads_) {
    for (const auto& [region, work] : thread.region_work) {
      if (work.first == OrderGraph::kNone) continue;
      std::uint32_t first = OrderGraph::kNone;
      bool is_paced = false;
      for (const auto& [call, entry] : work.calls_behind) {
        first = std::min(first, entry);
        is_paced = is_paced || work.waited_later.contains(call.first);
      }
      if (!work.has_waited) {
        unwaited.push_back({region, work.first, false});
      } else if (first != OrderGraph::kNone && !is_paced) {
        unwaited.push_back({region, first, true});
      }
    }
  }
  return unwaited;
}

}  // namespace foretrace
