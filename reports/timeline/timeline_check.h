// What every timeline keeps to, whoever wrote it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reports/timeline/timeline.h"

namespace foretrace {

/// No time of a timeline is farther from its origin: 104 days, in nanoseconds; exact as a double.
inline constexpr std::int64_t kLongestTimelineNs = std::int64_t{1} << 53;

/// The first thing that cannot be: an index that points nowhere, a span that ends before it begins,
/// a factor that is none, two rows for one region. Empty when all is well.
std::optional<std::string> what_is_wrong(const Timeline& timeline);

}  // namespace foretrace
