// Everything of fixed length (host calls, launches, kernels, latencies) waits here, in exact
// integer picoseconds. Equal times fire in the order they were scheduled, so runs repeat.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "scenarios/base/values/units.h"

namespace foretrace::sim {

/// Whatever wants to be called back at a simulated moment. `what` is the handler's own code.
class Handler {
 public:
  virtual void fire(std::uint64_t what) = 0;

 protected:
  ~Handler() = default;
};

/// SimGrid's clock counts seconds in a double: after 2^52 ps, 75 minutes, it cannot tell one
/// picosecond from the next.
inline constexpr TimePoint kEndOfTime{std::chrono::hours{1}};
/// About a minute of work. Ten operations of a million ranks have fewer.
inline constexpr std::uint64_t kMostEvents = std::uint64_t{1} << 28;

/// The simulation passes one of these limits: what() says which.
class OutOfBounds : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class EventQueue {
 public:
  /// The time of the event that fired last; while one fires, its own time.
  TimePoint now() const { return now_; }

  void at(TimePoint when, Handler& who, std::uint64_t what) {
    const Entry entry{when < now_ ? now_ : when, sequence_++, &who, what};
    if (std::exchange(first_is_gone_, false)) {
      sink(entry);
    } else {
      heap_.emplace_back();
      rise(heap_.size() - 1, entry);
    }
  }

  bool empty() const { return heap_.size() == (first_is_gone_ ? 1 : 0); }
  TimePoint next() {
    close();
    return heap_.front().when;
  }
  void clear() {
    heap_.clear();
    first_is_gone_ = false;
  }

  /// Fires the earliest event.
  void pop_and_fire() {
    close();
    const Entry entry = heap_.front();
    if (entry.when > kEndOfTime) {
      throw OutOfBounds{"more than an hour of simulated time"};
    }
    if (++fired_ > kMostEvents) throw OutOfBounds{"more than 268435456 events"};
    first_is_gone_ = true;  // most events make one other, which takes the place
    now_ = entry.when;
    entry.who->fire(entry.what);
  }

  /// Moves the clock to where the engine's is: flows end between our events.
  void advance_to(TimePoint when) {
    if (when > now_) now_ = when;
  }

 private:
  struct Entry {
    TimePoint when;
    std::uint64_t sequence;
    Handler* who;
    std::uint64_t what;
    /// Without branches, which would be foretold wrong half of the time.
    bool operator<(const Entry& other) const {
      const bool earlier = when < other.when;
      const bool at_once = when == other.when;
      const bool before = sequence < other.sequence;
      return earlier | (at_once & before);
    }
  };

  /// Nothing took the place of the event that fired last.
  void close() {
    if (!std::exchange(first_is_gone_, false)) return;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
  }
  /// Puts the entry into the hole at the end, or above it.
  void rise(std::size_t hole, const Entry& entry) {
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / kChildren;
      if (!(entry < heap_[parent])) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = entry;
  }
  /// Puts it into the hole that the first one left, or below.
  void sink(const Entry& entry) {
    const std::size_t size = heap_.size();
    std::size_t hole = 0;
    for (std::size_t first = 1; first < size; first = hole * kChildren + 1) {
      std::size_t least = first;
      const std::size_t end = std::min(first + kChildren, size);
      for (std::size_t child = first + 1; child < end; ++child) {
        least = heap_[child] < heap_[least] ? child : least;
      }
      if (!(heap_[least] < entry)) break;
      heap_[hole] = heap_[least];
      hole = least;
    }
    heap_[hole] = entry;
  }

  /// A heap, the earliest entry first. Four children a node: half as deep as two, and they lie in
  /// two cache lines. Entries move into a hole: Boost's heaps swap, which is twice the work.
  static constexpr std::size_t kChildren = 4;
  std::vector<Entry> heap_;
  bool first_is_gone_ = false;  ///< its place is a hole
  TimePoint now_{};
  std::uint64_t sequence_ = 0;
  std::uint64_t fired_ = 0;
};

}  // namespace foretrace::sim
