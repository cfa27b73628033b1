// When each region ran on its host thread, for formats that show it as a slice: timelines hold
// regions' lengths only.
#pragma once

#include <cstdint>
#include <vector>

#include "reports/timeline/timeline.h"

namespace foretrace {

struct RegionSpan {
  std::uint32_t op{};    ///< OpId of the region
  std::uint32_t lane{};  ///< the host thread
  std::uint64_t instance{};
  std::int64_t begin_ns{}, end_ns{};
  std::uint32_t depth{};  ///< regions around it
};

/// From the first host call of a region to the end of its last one, by lane, begin and depth.
/// Without the regions whose operations the timeline does not tell (OpRow::inside) and those with
/// no host call.
std::vector<RegionSpan> region_spans(const Timeline& timeline);

}  // namespace foretrace
