// Which memory a GPU has gone through lately: how much else since a kernel's arrays were last used
// decides what of them is still in the level-2 cache (cost::missing_bytes).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace foretrace::sim {

/// Part of a buffer: where it begins, and how much of it is used.
struct UsedMemory {
  std::uint32_t buffer{};
  std::uint64_t offset = 0;
  double bytes = 0;

  bool same_place(const UsedMemory& other) const {
    return buffer == other.buffer && offset == other.offset;
  }
};

class Level2 {
 public:
  /// `before`: the distance of what this pass has not used yet: how much memory the pass before,
  /// the warm-up say, went through in all.
  explicit Level2(double before) : before_{before} {}

  /// A kernel or a copy goes through these. Gives for each, in their order, the bytes of different
  /// memory that were gone through since its last use began, this one's included.
  std::vector<double> use(std::span<const UsedMemory> memory);

 private:
  double before_;
  std::vector<UsedMemory> recent_;  ///< the latest first
};

}  // namespace foretrace::sim
