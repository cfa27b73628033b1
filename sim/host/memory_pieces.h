// Where cudaMalloc and cudaHostAlloc put small objects: the driver gets memory in pieces, and
// several objects share one. Who needs a new piece pays for the mapping, the others do not.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "scenarios/base/values/units.h"

namespace foretrace::sim {

/// The pieces of one device of a process, or its pinned ones, that hold objects of less than a
/// piece.
class MemoryPieces {
 public:
  /// Takes `size` for `buffer`, where least room is left. Whether a piece that is there had room.
  bool allocate(std::uint32_t buffer, Bytes size);
  /// The piece in which NCCL's own pinned memory leaves room, and which it keeps.
  void add_nccls();
  /// Whether others are left in its piece, which stays.
  bool free(std::uint32_t buffer);

 private:
  struct Piece {
    std::uint64_t room = 0;  ///< bytes that no object has
    std::uint32_t objects = 0;
  };
  struct Place {
    std::size_t piece = 0;
    std::uint64_t bytes = 0;
  };
  std::size_t empty_piece();

  std::vector<Piece> pieces_;
  std::set<std::pair<std::uint64_t, std::size_t>> by_room_;  ///< pieces with objects
  std::vector<std::size_t> given_back_;                      ///< those without
  std::map<std::uint32_t, Place> in_;                        ///< of a buffer
};

}  // namespace foretrace::sim
