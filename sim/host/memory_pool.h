// The pool of cudaMallocAsync, one for each device of a process: a range of addresses that is
// backed by whole pieces of memory where it is needed, and gives those that nobody uses back at the
// next synchronization (its release threshold is 0).
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "scenarios/base/values/units.h"

namespace foretrace::sim {

class MemoryPool {
 public:
  /// Takes `size` for `buffer`. Returns what the pool had to grow by: 0 when it had room.
  Bytes allocate(std::uint32_t buffer, Bytes size);
  void free(std::uint32_t buffer);
  /// Gives back the pieces that nobody uses: their bytes.
  Bytes trim();

 private:
  /// What somebody has, or has freed since the last synchronization: that is taken again, one with
  /// its free neighbours, but it is no part of the room beside it yet.
  struct Block {
    std::uint64_t end = 0;
    bool freed = false;
  };
  using Blocks = std::map<std::uint64_t, Block>;

  Blocks::iterator freed_block(std::uint64_t size);
  std::uint64_t begin_of_room(std::uint64_t size) const;
  std::uint64_t pieces_missing(std::uint64_t begin, std::uint64_t size) const;
  Bytes back(std::uint64_t begin, std::uint64_t end);

  Blocks blocks_;                                 ///< by their begin
  std::set<std::uint64_t> pieces_;                ///< numbers of those that back the range
  std::map<std::uint32_t, std::uint64_t> begin_;  ///< of a buffer's block
};

}  // namespace foretrace::sim
