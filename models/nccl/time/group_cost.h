// What collectives cost that one kernel runs together: all calls of a group on one communicator.
#pragma once

#include <optional>
#include <vector>

#include "models/nccl/time/cost.h"

namespace foretrace::nccl {

/// Each rank of a chain behind the one before it, and the last one.
struct Hops {
  double seconds = 0;
  double last_seconds = 0;
};

/// Each call's part, in their order; none is a send/recv in disguise (is_send_recv). NCCL deals the
/// calls out over the kernel's channels, and a channel runs its parts of several calls one after
/// another: the busiest channel's time beside the wire becomes everybody's latency, and the wires
/// of all add up on the ports. Where that is not known (trees, NVLS, several nodes, a machine file
/// without times), each costs what it does alone.
struct GroupedTime {
  Choice choice;
  double seconds = 0;
  double wire_seconds = 0;     ///< of them; what no one can slow down is the rest
  double network_seconds = 0;  ///< that the NICs are busy
  std::optional<Hops> hops{};  ///< chain, beside them
};
std::vector<GroupedTime> group_time(Reading& read, const Tuning& tuning,
                                    const std::vector<Call>& calls);

std::vector<Cost> group_cost(const Machine& machine, const Tuning& tuning,
                             const std::vector<Call>& calls);

}  // namespace foretrace::nccl
