// Memory on the timeline: what each process's tensors take at each call of its host thread, in
// whose order the caching allocator works.
#pragma once

#include <vector>

#include "reports/timeline/timeline.h"
#include "scenarios/training_step/memory.h"

namespace foretrace::sim {

/// The curves are those of the program that was simulated. `reserved` is the largest sum so
/// far, in whole segments of the allocator: what it keeps; fragments are not followed.
std::vector<MemorySample> memory_track(const Timeline& timeline,
                                       const std::vector<training::MemoryCurve>& curves);

}  // namespace foretrace::sim
