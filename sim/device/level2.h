// Which memory a GPU has gone through lately: how much else since a kernel's arrays were last used
// decides what of them is still in the level-2 cache (cost::missing_bytes).
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <span>
#include <vector>

namespace foretrace::sim {

/// Part of a buffer: where it begins, and how much of it is used.
struct UsedMemory {
  std::uint32_t buffer{};
  std::uint64_t offset = 0;
  double bytes = 0;
  bool written = false;      ///< else only read
  bool was_written = false;  ///< by it or before
  bool summed = false;       ///< a sum has read it
  std::uint64_t kernel = 0;  ///< that used it last

  UsedMemory write() const {
    UsedMemory memory = *this;
    memory.written = true;
    return memory;
  }
  UsedMemory sum() const {
    UsedMemory memory = *this;
    memory.summed = true;
    return memory;
  }
  /// Kernels write it, and no sum reads it. Among such arrays the cache keeps what its size says by
  /// the bytes between two uses of a place; what is only read takes more room, for which all bytes
  /// of both kernels make up.
  bool lies_once() const { return was_written && !summed; }
  bool same_place(const UsedMemory& other) const {
    return buffer == other.buffer && offset == other.offset;
  }
};

/// Of a kernel's array, what decides how much of it the cache still has, and how fast it gives
/// that.
struct LastUse {
  double distance = 0;     ///< bytes of different memory since it began, the new kernel's included
  bool only_read = false;  ///< by it and, since the array was written last, by those before
  bool wrote = false;      ///< it is known, and wrote the array
};

/// Kernels have three arrays, seldom more.
using LastUses = boost::container::small_vector<LastUse, 4>;

class Level2 {
 public:
  /// `before`: the distance of what this pass has not used yet: how much memory the pass before,
  /// the warm-up say, went through in all.
  explicit Level2(double before) : before_{before} {}

  /// A kernel or a copy goes through these. Gives the last use of each, in their order.
  LastUses use(std::span<const UsedMemory> memory);

 private:
  double bytes_since(std::uint64_t then, std::span<const UsedMemory> own) const;

  double before_;
  std::uint64_t kernels_ = 0;
  std::vector<UsedMemory> recent_;  ///< each place once among those looked at; the latest last
};

}  // namespace foretrace::sim
