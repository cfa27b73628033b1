#include "sim/device/level2.h"

#include <algorithm>
#include <cstddef>

namespace foretrace::sim {
namespace {

/// Farther back nobody looks: it bounds what a kernel's look-up costs.
constexpr std::size_t kMostPlaces = 256;

auto find_place(auto& memory, const UsedMemory& place) {
  return std::ranges::find_if(memory, [&](const auto& other) { return other.same_place(place); });
}

bool has_place(const auto& memory, const UsedMemory& place) {
  return find_place(memory, place) != memory.end();
}

}  // namespace

LastUses Level2::use(std::span<const UsedMemory> memory) {
  boost::container::small_vector<UsedMemory, 8> own;  // each place once
  double own_bytes = 0;
  for (const UsedMemory& used : memory) {
    if (const auto same = find_place(own, used); same != own.end()) {
      same->written |= used.written;
      continue;
    }
    own.push_back(used);
    own_bytes += used.bytes;
  }
  LastUses last(memory.size(), LastUse{before_});
  double since = 0;                                      // of others' memory
  boost::container::small_vector<std::size_t, 8> found;  // in recent_, the latest first
  const std::size_t oldest = recent_.size() - std::min(recent_.size(), kMostPlaces);
  for (std::size_t at = recent_.size(); at > oldest && found.size() < own.size(); --at) {
    const UsedMemory& place = recent_[at - 1];
    if (!has_place(own, place)) {
      since += place.bytes;
      continue;
    }
    found.push_back(at - 1);
    for (std::size_t i = 0; i < memory.size(); ++i) {
      if (!memory[i].same_place(place) || memory[i].bytes > place.bytes) continue;
      last[i] = {since + own_bytes, !place.written, place.written};
    }
  }
  // Not the oldest first: what is used again was used lately, and little has to move up.
  for (const std::size_t at : found) {
    recent_.erase(recent_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  recent_.insert(recent_.end(), own.rbegin(), own.rend());
  if (recent_.size() > 2 * kMostPlaces) {
    recent_.erase(recent_.begin(), recent_.end() - static_cast<std::ptrdiff_t>(kMostPlaces));
  }
  return last;
}

}  // namespace foretrace::sim
