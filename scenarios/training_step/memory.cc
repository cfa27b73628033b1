#include "scenarios/training_step/memory.h"

#include <algorithm>
#include <numeric>

namespace foretrace::training {

std::string_view part_name(Part part) {
  constexpr std::array<std::string_view, kParts> kNames{"parameters",  "gradients", "optimizer",
                                                        "activations", "temporary", "buffers"};
  return kNames[static_cast<std::size_t>(part)];
}

std::int64_t sum(const PartBytes& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

Memory::Id Memory::allocate(Part part, std::int64_t bytes) {
  constexpr std::int64_t kRound = 512;
  const std::int64_t rounded = (bytes + kRound - 1) / kRound * kRound;
  blocks_.push_back({part, rounded});
  now_[static_cast<std::size_t>(part)] += rounded;
  if (sum(now_) > sum(peak_)) peak_ = now_;
  note_change();
  return blocks_.size() - 1;
}

void Memory::free(Id id) {
  Block& block = blocks_[id];
  now_[static_cast<std::size_t>(block.part)] -= block.bytes;
  block.bytes = 0;
  note_change();
}

void Memory::note_change() {
  if (clock_ == nullptr) return;
  const std::int64_t bytes = sum(now_);
  if (changes_.empty() || changes_.back().at != *clock_)
    changes_.push_back({*clock_, bytes, bytes});
  changes_.back().bytes = bytes;
  changes_.back().most = std::max(changes_.back().most, bytes);
}

}  // namespace foretrace::training
