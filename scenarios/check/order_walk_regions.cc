// What regions issue, and whether their host thread waits for any of it before they end.
#include <algorithm>

#include "scenarios/check/order_walk.h"

namespace foretrace {

/// The thread knows by now.
bool OrderWalk::has_ended_for(const Thread& thread, std::uint32_t node) const {
  const OrderNode& entry = graph_.node(node);
  return entry.lane < thread.clock.size() && thread.clock[entry.lane] >= entry.position;
}

/// What ended between two executions was waited for outside.
void OrderWalk::begin_region(Thread& thread, const Op& region) {
  thread.regions.push_back(&region);
  std::erase_if(thread.region_work[&region].open,
                [&](const auto& open) { return has_ended_for(thread, open.second); });
}

/// Also where an execution waits for the one before: the device paces it.
void OrderWalk::end_region(Thread& thread) {
  RegionWork& work = thread.region_work[thread.regions.back()];
  thread.regions.pop_back();
  work.waits = work.waits || std::ranges::any_of(work.open, [&](const auto& open) {
                 return has_ended_for(thread, open.second);
               });
}

void OrderWalk::note_in_regions(Thread& thread, std::uint32_t entry) {
  for (const Op* region : thread.regions) {
    RegionWork& work = thread.region_work[region];
    work.first = std::min(work.first, entry);
    work.open.emplace(graph_.node(entry).lane, entry);
  }
}

std::vector<UnwaitedRegion> OrderWalk::unwaited_regions() const {
  std::vector<UnwaitedRegion> unwaited;
  for (const Thread& thread : threads_) {
    for (const auto& [region, work] : thread.region_work) {
      if (work.waits || work.first == OrderGraph::kNone) continue;
      unwaited.push_back({region, work.first});
    }
  }
  return unwaited;
}

}  // namespace foretrace
