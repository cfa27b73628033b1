// Which pages of new host memory a pass has touched already.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

#include "scenarios/base/values/units.h"

namespace foretrace::sim {

/// Of one buffer: parts [begin, end) that do not overlap.
class TouchedPages {
 public:
  /// Touches `size` bytes from `begin` on; returns how many of them nobody had touched.
  Bytes touch(std::uint64_t begin, Bytes size) {
    std::uint64_t first = begin, last = begin + size.count, known = 0;
    auto part = parts_.upper_bound(begin);
    if (part != parts_.begin() && std::prev(part)->second >= begin) --part;
    while (part != parts_.end() && part->first <= last) {
      const std::uint64_t from = std::max(part->first, begin);
      const std::uint64_t to = std::min(part->second, begin + size.count);
      if (to > from) known += to - from;
      first = std::min(first, part->first);
      last = std::max(last, part->second);
      part = parts_.erase(part);
    }
    if (last > first) parts_[first] = last;
    return {size.count - known};
  }

 private:
  std::map<std::uint64_t, std::uint64_t> parts_;
};

}  // namespace foretrace::sim
