// Everything of fixed length (host calls, launches, kernels, latencies) waits here, in exact
// integer picoseconds. Equal times fire in the order they were scheduled, so runs repeat.
#pragma once

#include <boost/heap/d_ary_heap.hpp>
#include <cstdint>
#include <functional>
#include <stdexcept>

#include "scenarios/values/units.h"

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
    heap_.push({when < now_ ? now_ : when, sequence_++, &who, what});
  }

  bool empty() const { return heap_.empty(); }
  TimePoint next() const { return heap_.top().when; }
  void clear() { heap_.clear(); }

  /// Fires the earliest event.
  void pop_and_fire() {
    const Entry entry = heap_.top();
    if (entry.when > kEndOfTime) {
      throw OutOfBounds{"more than an hour of simulated time"};
    }
    if (++fired_ > kMostEvents) throw OutOfBounds{"more than 268435456 events"};
    heap_.pop();
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
    bool operator>(const Entry& other) const {
      return when != other.when ? when > other.when : sequence > other.sequence;
    }
  };
  /// Four children a node: half as deep as two, and they lie in two cache lines.
  boost::heap::d_ary_heap<Entry, boost::heap::arity<4>, boost::heap::compare<std::greater<>>> heap_;
  TimePoint now_{};
  std::uint64_t sequence_ = 0;
  std::uint64_t fired_ = 0;
};

}  // namespace foretrace::sim
