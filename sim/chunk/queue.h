// The queue of what slices do: 16 bytes an entry, a radix heap. Time only moves forward, so an
// entry waits in the bucket of the highest bit in which its time differs from the latest one
// popped, and comes down bucket by bucket. Equal times come out in the order they went in, so runs
// repeat; and ranks that run in step, as rings do, cost next to nothing.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace foretrace::sim {

/// Picoseconds.
using ChunkTime = std::int64_t;

struct ChunkEvent {
  ChunkTime when;
  std::uint32_t what;   ///< the network's own code
  std::uint32_t where;  ///< a stage or a port
};

class ChunkQueue {
 public:
  static constexpr ChunkTime kNever = std::numeric_limits<ChunkTime>::max();

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  /// Not before the latest time popped.
  [[gnu::always_inline]] void push(const ChunkEvent& event) {
    buckets_[bucket_of(event.when)].push_back(event);
    next_ = std::min(next_, event.when);
    ++size_;
  }

  /// The earliest time, or kNever.
  ChunkTime next() const { return next_; }

  /// The entry that has waited longest of those with the earliest time.
  ChunkEvent pop() {
    if (taken_ == buckets_[0].size()) refill();
    const ChunkEvent event = buckets_[0][taken_++];
    --size_;
    if (taken_ == buckets_[0].size()) {
      buckets_[0].clear();
      taken_ = 0;
      next_ = earliest();
    }
    return event;
  }

 private:
  std::size_t bucket_of(ChunkTime when) const {
    return static_cast<std::size_t>(
        std::bit_width(static_cast<std::uint64_t>(when) ^ static_cast<std::uint64_t>(last_)));
  }

  std::size_t first_bucket() const {
    std::size_t b = 1;
    while (b < buckets_.size() && buckets_[b].empty()) ++b;
    return b;
  }

  /// Of what waits in the buckets beyond the first.
  ChunkTime earliest() const {
    ChunkTime when = kNever;
    const std::size_t b = first_bucket();
    if (b == buckets_.size()) return when;
    for (const ChunkEvent& event : buckets_[b]) when = std::min(when, event.when);
    return when;
  }

  /// The earliest become the first bucket; the others of theirs come down, in their order.
  void refill() {
    const std::size_t b = first_bucket();
    last_ = next_;
    scratch_.swap(buckets_[b]);
    for (const ChunkEvent& event : scratch_) buckets_[bucket_of(event.when)].push_back(event);
    scratch_.clear();
  }

  std::array<std::vector<ChunkEvent>, 65> buckets_;
  std::vector<ChunkEvent> scratch_;
  ChunkTime last_ = 0;
  ChunkTime next_ = kNever;
  std::size_t taken_ = 0;  ///< of the first bucket
  std::size_t size_ = 0;
};

}  // namespace foretrace::sim
