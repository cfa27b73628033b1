#include "sim/host/memory_pieces.h"

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
  const auto found = by_room_.lower_bound({bytes, 0});
  const bool is_there = found != by_room_.end();
  std::size_t piece = 0;
  if (is_there) {
    piece = found->second;
    by_room_.erase(found);
  } else {
    piece = empty_piece();
  }
  pieces_[piece].room -= bytes;
  ++pieces_[piece].objects;
  by_room_.emplace(pieces_[piece].room, piece);
  in_[buffer] = {piece, bytes};
  return is_there;
}

void MemoryPieces::add_nccls() {
  static const std::uint64_t kRoom = constant_size("nccl.pinned_room").count;
  pieces_.push_back({.room = kRoom, .objects = 1});
  by_room_.emplace(kRoom, pieces_.size() - 1);
}

std::size_t MemoryPieces::empty_piece() {
  if (given_back_.empty()) {
    pieces_.push_back({.room = bytes_of_a_piece()});
    return pieces_.size() - 1;
  }
  const std::size_t piece = given_back_.back();
  given_back_.pop_back();
  return piece;
}

bool MemoryPieces::free(std::uint32_t buffer) {
  const auto found = in_.find(buffer);
  if (found == in_.end()) return false;
  const auto [at, bytes] = found->second;
  in_.erase(found);
  Piece& piece = pieces_[at];
  by_room_.erase({piece.room, at});
  piece.room += bytes;
  --piece.objects;
  if (piece.objects == 0) {
    given_back_.push_back(at);
    return false;
  }
  by_room_.emplace(piece.room, at);
  return true;
}

}  // namespace foretrace::sim
