#include "sim/host/memory_pool.h"

namespace foretrace::sim {
namespace {

/// The pool grows by whole pieces of this size: on H200s, 4 KiB and 8 MiB cost the same, 64 MiB
/// twice as much (tests/hw/causes/allocation.yaml).
constexpr std::uint64_t kPiece = std::uint64_t{32} << 20;
constexpr std::uint64_t kAlignment = 512;

constexpr std::uint64_t rounded_up(std::uint64_t size, std::uint64_t to) {
  return (size + to - 1) / to * to;
}

}  // namespace

/// Where a part of this size begins in the first gap that is large enough.
std::uint64_t MemoryPool::room_in(const Piece& piece, std::uint64_t size) {
  std::uint64_t begin = 0;
  for (const auto& [used, end] : piece.used) {
    if (used - begin >= size) return begin;
    begin = end;
  }
  return piece.size - begin >= size ? begin : kNoRoom;
}

Bytes MemoryPool::allocate(std::uint32_t buffer, Bytes size) {
  const std::uint64_t bytes = rounded_up(size.count, kAlignment);
  for (auto& [number, piece] : pieces_) {
    const std::uint64_t begin = room_in(piece, bytes);
    if (begin == kNoRoom) continue;
    piece.used[begin] = begin + bytes;
    parts_[buffer] = {number, begin};
    return {};
  }
  const std::uint64_t grown = rounded_up(bytes, kPiece);
  pieces_[next_] = {grown, {{0, bytes}}};
  parts_[buffer] = {next_++, 0};
  return {grown};
}

void MemoryPool::free(std::uint32_t buffer) {
  const auto part = parts_.find(buffer);
  if (part == parts_.end()) return;
  pieces_[part->second.piece].used.erase(part->second.begin);
  parts_.erase(part);
}

Bytes MemoryPool::trim() {
  Bytes given_back;
  std::erase_if(pieces_, [&](const auto& entry) {
    if (!entry.second.used.empty()) return false;
    given_back = given_back + Bytes{entry.second.size};
    return true;
  });
  return given_back;
}

}  // namespace foretrace::sim
