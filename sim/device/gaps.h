// What passes between two entries of a stream, remembered: every entry asks for it.
#pragma once

#include <cstddef>
#include <vector>

#include "models/cost/stream.h"

namespace foretrace::sim {

class Gaps {
 public:
  explicit Gaps(const Machine& machine) : machine_{machine} {}

  /// cost::gap().
  Duration between(const cost::Neighbours& neighbours) {
    // A copy's depends on its size and engine too.
    const bool copies = neighbours.before == cost::Before::Copy;
    if (copies || neighbours.next == cost::Entry::Copy) return gap(neighbours);
    if (known_.empty()) known_.assign(kPlaces, kUnknown);
    Duration& known = known_[place_of(neighbours)];
    if (known == kUnknown) known = gap(neighbours);
    return known;
  }

 private:
  static constexpr Duration kUnknown{-1};
  static constexpr auto kBefore = static_cast<std::size_t>(cost::Before::EventAfterCopy) + 1;
  static constexpr auto kEntries = static_cast<std::size_t>(cost::Entry::NoTime) + 1;
  static constexpr std::size_t kPlaces = kBefore * kEntries * kBefore * 4;

  static std::size_t place_of(const cost::Neighbours& neighbours) {
    const auto before = static_cast<std::size_t>(neighbours.before);
    const auto next = static_cast<std::size_t>(neighbours.next);
    const auto waited_for = static_cast<std::size_t>(neighbours.waited_for);
    return ((before * kEntries + next) * kBefore + waited_for) * 4 + 2 * neighbours.in_graph +
           neighbours.event_between;
  }
  Duration gap(const cost::Neighbours& neighbours) const {
    Reading read{machine_};
    return cost::gap(read, neighbours);
  }

  const Machine& machine_;
  std::vector<Duration> known_;
};

}  // namespace foretrace::sim
