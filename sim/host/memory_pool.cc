#include "sim/host/memory_pool.h"

#include <algorithm>

#include "models/constants/constants.h"

namespace foretrace::sim {
namespace {

/// The pool grows by whole pieces of this size.
std::uint64_t piece_bytes() {
  static const std::uint64_t kPiece = constant_size("host.pool_piece").count;
  return kPiece;
}
constexpr std::uint64_t kAlignment = 512;

std::uint64_t pieces_until(std::uint64_t end) { return (end + piece_bytes() - 1) / piece_bytes(); }

}  // namespace

MemoryPool::Blocks::iterator MemoryPool::freed_block(std::uint64_t size) {
  return std::ranges::find_if(blocks_, [&](const auto& entry) {
    return entry.second.freed && entry.second.end - entry.first >= size;
  });
}

std::uint64_t MemoryPool::pieces_missing(std::uint64_t begin, std::uint64_t size) const {
  std::uint64_t missing = 0;
  for (std::uint64_t piece = begin / piece_bytes(); piece < pieces_until(begin + size); ++piece) {
    if (!pieces_.contains(piece)) ++missing;
  }
  return missing;
}

/// Of the places between blocks and behind the last one, the first that needs fewest new pieces: on
/// an H200, 33 MiB behind 4 KiB make the pool one piece larger, 64 MiB two
/// (hw/laboratory/causes/pool.yaml).
std::uint64_t MemoryPool::begin_of_room(std::uint64_t size) const {
  std::uint64_t begin = blocks_.empty() ? 0 : std::prev(blocks_.end())->second.end;
  std::uint64_t fewest = pieces_missing(begin, size);
  std::uint64_t from = 0;
  for (const auto& [next, block] : blocks_) {
    if (next - from >= size && pieces_missing(from, size) < fewest) {
      begin = from;
      fewest = pieces_missing(from, size);
    }
    from = block.end;
  }
  return begin;
}

Bytes MemoryPool::back(std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t before = pieces_.size();
  for (std::uint64_t piece = begin / piece_bytes(); piece < pieces_until(end); ++piece) {
    pieces_.insert(piece);
  }
  return {(pieces_.size() - before) * piece_bytes()};
}

Bytes MemoryPool::allocate(std::uint32_t buffer, Bytes size) {
  const std::uint64_t bytes =
      (std::max<std::uint64_t>(size.count, 1) + kAlignment - 1) / kAlignment * kAlignment;
  if (const auto freed = freed_block(bytes); freed != blocks_.end()) {
    const std::uint64_t begin = freed->first;
    const std::uint64_t end = freed->second.end;
    freed->second = {begin + bytes, false};
    if (begin + bytes < end) blocks_[begin + bytes] = {end, true};
    begin_[buffer] = begin;
    return {};
  }
  const std::uint64_t begin = begin_of_room(bytes);
  blocks_[begin] = {begin + bytes, false};
  begin_[buffer] = begin;
  return back(begin, begin + bytes);
}

void MemoryPool::free(std::uint32_t buffer) {
  const auto begin = begin_.find(buffer);
  if (begin == begin_.end()) return;
  auto block = blocks_.find(begin->second);
  begin_.erase(begin);
  block->second.freed = true;
  // One with its neighbours that are free, too.
  const auto joins = [](const auto& left, const auto& right) {
    return left->second.freed && right->second.freed && left->second.end == right->first;
  };
  if (const auto next = std::next(block); next != blocks_.end() && joins(block, next)) {
    block->second.end = next->second.end;
    blocks_.erase(next);
  }
  if (block == blocks_.begin()) return;
  if (const auto before = std::prev(block); joins(before, block)) {
    before->second.end = block->second.end;
    blocks_.erase(block);
  }
}

Bytes MemoryPool::trim() {
  std::erase_if(blocks_, [](const auto& entry) { return entry.second.freed; });
  std::set<std::uint64_t> used;
  for (const auto& [begin, block] : blocks_) {
    for (std::uint64_t piece = begin / piece_bytes(); piece < pieces_until(block.end); ++piece) {
      used.insert(piece);
    }
  }
  const Bytes given_back{(pieces_.size() - used.size()) * piece_bytes()};
  pieces_ = std::move(used);
  return given_back;
}

}  // namespace foretrace::sim
