// The pool of cudaMallocAsync, one for each device of a process: it grows by pieces, and gives
// those that nobody uses back at the next synchronization (its release threshold is 0).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "scenarios/values/units.h"

namespace foretrace::sim {

class MemoryPool {
 public:
  /// Takes `size` for `buffer`. Returns what the pool had to grow by: 0 when it had room.
  Bytes allocate(std::uint32_t buffer, Bytes size);
  void free(std::uint32_t buffer);
  /// Gives back the pieces that nobody uses: their bytes.
  Bytes trim();

 private:
  struct Piece {
    std::uint64_t size = 0;
    std::map<std::uint64_t, std::uint64_t> used;  ///< end of each part by its begin
  };
  struct Part {
    std::uint32_t piece = 0;
    std::uint64_t begin = 0;
  };
  static constexpr std::uint64_t kNoRoom = ~std::uint64_t{0};
  static std::uint64_t room_in(const Piece& piece, std::uint64_t size);

  std::map<std::uint32_t, Piece> pieces_;  ///< by number, in the order of their making
  std::map<std::uint32_t, Part> parts_;    ///< by buffer
  std::uint32_t next_ = 0;
};

}  // namespace foretrace::sim
