// Memory on the timeline: what each process's tensors take at each call of its host thread, in
// whose order the caching allocator works.
#pragma once

#include <string_view>
#include <vector>

#include "reports/timeline/timeline.h"
#include "scenarios/training_step/expand.h"

namespace foretrace::sim {

/// `text` is what was simulated; it ends with the expansion's. `reserved` is the largest sum so
/// far, in whole segments of the allocator: what it keeps; fragments are not followed.
std::vector<MemorySample> memory_track(const Timeline& timeline,
                                       const training::Expansion& expansion, std::string_view text);

}  // namespace foretrace::sim
