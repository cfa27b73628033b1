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

/// Since a place of an array was used by the kernel `then`, which went through all of its arrays at
/// once as the new one does.
double Level2::bytes_since(std::uint64_t then, std::span<const UsedMemory> own) const {
  double bytes = 0;
  for (const UsedMemory& mine : own) bytes += mine.bytes;
  for (auto place = recent_.rbegin(); place != recent_.rend() && place->kernel >= then; ++place) {
    if (has_place(own, *place)) continue;
    bytes += place->bytes;
  }
  return bytes;
}

LastUses Level2::use(std::span<const UsedMemory> memory) {
  boost::container::small_vector<UsedMemory, 8> own;  // each place once
  double own_bytes = 0;
  for (const UsedMemory& used : memory) {
    if (const auto same = find_place(own, used); same != own.end()) {
      same->written |= used.written;
      same->summed |= used.summed;
      continue;
    }
    own.push_back(used);
    own_bytes += used.bytes;
  }
  for (UsedMemory& used : own) used.was_written = used.written;
  LastUses last(memory.size(), LastUse{before_});
  double since = 0;  // of others' memory
  bool once = true;  // all of that is (lies_once)
  boost::container::small_vector<bool, 8> all_once(memory.size(), false);
  boost::container::small_vector<std::size_t, 8> found;  // in recent_, the latest first
  const std::size_t oldest = recent_.size() - std::min(recent_.size(), kMostPlaces);
  for (std::size_t at = recent_.size(); at > oldest && found.size() < own.size(); --at) {
    const UsedMemory& place = recent_[at - 1];
    if (!has_place(own, place)) {
      since += place.bytes;
      once &= place.lies_once();
      continue;
    }
    const auto mine = find_place(own, place);
    mine->was_written |= place.was_written;
    mine->summed |= place.summed;
    mine->kernel = place.kernel;
    found.push_back(at - 1);
    for (std::size_t i = 0; i < memory.size(); ++i) {
      if (!memory[i].same_place(place) || memory[i].bytes > place.bytes) continue;
      last[i] = {since + own_bytes, !place.written, place.written};
      all_once[i] = once;
    }
  }
  if (own.size() > 1 && std::ranges::all_of(own, &UsedMemory::lies_once)) {
    for (std::size_t i = 0; i < memory.size(); ++i) {
      if (!all_once[i]) continue;
      const std::uint64_t then = find_place(own, memory[i])->kernel;
      last[i].distance = std::max(memory[i].bytes, bytes_since(then, {own.data(), own.size()}));
    }
  }
  ++kernels_;
  for (UsedMemory& used : own) used.kernel = kernels_;
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
