#include "sim/device/level2.h"

#include <algorithm>

namespace foretrace::sim {
namespace {

/// Farther back nobody looks: it bounds what a kernel's look-up costs.
constexpr std::size_t kMostPlaces = 256;

auto find_place(auto& memory, const UsedMemory& place) {
  return std::ranges::find_if(memory, [&](const auto& other) { return other.same_place(place); });
}

bool has_place(const std::vector<UsedMemory>& memory, const UsedMemory& place) {
  return find_place(memory, place) != memory.end();
}

}  // namespace

std::vector<LastUse> Level2::use(std::span<const UsedMemory> memory) {
  std::vector<UsedMemory> own;  // each place once
  double own_bytes = 0;
  for (const UsedMemory& used : memory) {
    if (const auto same = find_place(own, used); same != own.end()) {
      same->written |= used.written;
      continue;
    }
    own.push_back(used);
    own_bytes += used.bytes;
  }
  std::vector<LastUse> last(memory.size(), LastUse{before_});
  double since = 0;  // of others' memory
  for (const UsedMemory& place : recent_) {
    if (!has_place(own, place)) {
      since += place.bytes;
      continue;
    }
    for (std::size_t i = 0; i < memory.size(); ++i) {
      if (!memory[i].same_place(place) || memory[i].bytes > place.bytes) continue;
      last[i] = {since + own_bytes, !place.written, place.written};
    }
  }
  std::erase_if(recent_, [&](const UsedMemory& place) { return has_place(own, place); });
  recent_.insert(recent_.begin(), own.begin(), own.end());
  if (recent_.size() > kMostPlaces) recent_.resize(kMostPlaces);
  return last;
}

}  // namespace foretrace::sim
