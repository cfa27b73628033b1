// One clock over several hosts. Each has a CLOCK_MONOTONIC of its own, with its own beginning and
// its own speed, so rank 0 asks every other host for its time, as NTP does: the reply was written
// between the question and the answer, and the shortest of many round trips says the most. The same
// again after a traced pass gives the drift between the two.
#pragma once

#include <cstdint>
#include <span>

#include "hw/run/processes.h"

namespace foretrace::hw {

/// One question of rank 0. `sent_ns` and `received_ns` are on rank 0's clock, `remote_ns` on the
/// other's.
struct RoundTrip {
  std::int64_t sent_ns{};
  std::int64_t remote_ns{};
  std::int64_t received_ns{};
};

/// How a host's clock stands to rank 0's at one moment.
struct ClockOffset {
  std::int64_t ahead_ns{};  ///< this host's clock minus rank 0's
  std::int64_t
      bound_ns{};        ///< by how much `ahead_ns` may be wrong: half of the shortest round trip
  std::int64_t at_ns{};  ///< when, on this host's clock
};

/// By the shortest round trip. `trips` is not empty.
ClockOffset offset_of(std::span<const RoundTrip> trips);

/// The drift of a host's clock against rank 0's between two comparisons: 1e-6 gains 1 us in 1 s. 0
/// when the two bounds explain the difference.
double drift_between(const ClockOffset& before, const ClockOffset& after);
/// How wrong `before`, with that drift, may be at any moment between the two.
std::int64_t bound_between(const ClockOffset& before, const ClockOffset& after);

/// Of all processes of one scenario, which call the functions together. Does nothing and costs
/// nothing on one host.
class HostClocks {
 public:
  explicit HostClocks(const Processes& processes) : processes_{processes} { compare(); }

  /// Asks all hosts again.
  void compare();
  const ClockOffset& offset() const { return offset_; }

  /// All processes leave at one moment, up to bound_ns() of each host. Returns this moment on this
  /// host's clock. Compares anew when the last time is a second ago: clocks drift by some us in it.
  std::int64_t leave_together();
  /// By how much this process left too late the last time, because the message that named the
  /// moment came after it.
  std::int64_t late_ns() const { return late_ns_; }

 private:
  const Processes& processes_;
  ClockOffset offset_;
  std::int64_t late_ns_ = 0;
};

/// How far two hosts' clocks may be apart, from the bounds of all hosts' offsets; 0 on one host.
/// The same in all processes.
std::int64_t bound_between_hosts(const Processes& processes, std::int64_t bound_ns);

}  // namespace foretrace::hw
