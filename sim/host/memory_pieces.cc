#include "sim/host/memory_pieces.h"

#include <algorithm>

#include "models/constants/constants.h"

namespace foretrace::sim {
namespace {

std::uint64_t bytes_of_a_piece() {
  static const std::uint64_t kPiece = constant_size("host.malloc_piece").count;
  return kPiece;
}

std::uint64_t in_its_piece(std::uint64_t bytes) {
  constexpr std::uint64_t kAlignment = 512;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

bool MemoryPieces::allocate(std::uint32_t buffer, Bytes size) {
  const std::uint64_t bytes = in_its_piece(size.count);
  if (bytes >= bytes_of_a_piece()) return false;
  const auto found = std::ranges::find_if(
      pieces_, [&](const Piece& piece) { return piece.objects > 0 && piece.room >= bytes; });
  const bool is_there = found != pieces_.end();
  const auto at =
      is_there ? found : pieces_.insert(pieces_.end(), Piece{.room = bytes_of_a_piece()});
  at->room -= bytes;
  ++at->objects;
  in_[buffer] = {static_cast<std::size_t>(at - pieces_.begin()), bytes};
  return is_there;
}

bool MemoryPieces::free(std::uint32_t buffer) {
  const auto found = in_.find(buffer);
  if (found == in_.end()) return false;
  Piece& piece = pieces_[found->second.piece];
  piece.room += found->second.bytes;
  in_.erase(found);
  return --piece.objects > 0;
}

}  // namespace foretrace::sim
