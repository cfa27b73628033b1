// Times of spans as sets of intervals, in nanoseconds.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace foretrace::explain {

using Times = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// Sorted and disjoint; empty intervals are gone.
Times joined(Times times);
/// `times` without what `taken` covers; both joined.
Times without(const Times& times, const Times& taken);
std::int64_t length(const Times& times);

}  // namespace foretrace::explain
