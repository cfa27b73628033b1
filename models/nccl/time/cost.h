// What one NCCL operation costs on the GPUs as a flow: collective_time(), split into what others
// cannot slow down and what goes through the ports.
#pragma once

#include <cstdint>
#include <optional>

#include "models/machine/machine.h"
#include "models/nccl/time/collective_time.h"

namespace foretrace::nccl {

/// One operation as its ranks run it once all of them have arrived: `latency`, then `wire_bytes`
/// through every NVLink port that takes part. A chain's first rank is through then; each other one
/// `hop` after the one before it, the last one `last_hop`.
struct Cost {
  Choice choice;       ///< channels of the whole kernel
  Duration network{};  ///< of the latency and the wire: that the NICs of each node are busy
  Duration latency;
  Bytes wire_bytes;  ///< per port and direction, in units of the port's full bandwidth: what NCCL
                     ///< gets through a port counts as all of it
  std::optional<Duration> hop{};  ///< chain: broadcast, reduce, and a send to its receiver
  Duration last_hop{};

  /// Of a chain's last rank behind its first.
  Duration hops(std::uint32_t ranks) const {
    return hop && ranks > 1 ? *hop * (std::int64_t{ranks} - 2) + last_hop : Duration{0};
  }
};

/// The time beside the wire is latency; the rest is traffic that others may slow down.
Cost cost_of(const Machine& machine, const Choice& choice, double seconds, double wire_seconds,
             double network_seconds = 0);

Cost collective_cost(const Machine& machine, const Tuning& tuning, const Call& call);

/// One send and its receive; `both_ways` when the group sends and receives.
Cost send_recv_cost(const Machine& machine, const Tuning& tuning, Bytes size, bool both_ways,
                    Peer peer = Peer::SameNode, bool direct = false);

/// What a rank sends to itself: beside what goes to others, and over no link.
Cost own_copy_cost(const Machine& machine, const Tuning& tuning, Bytes size, bool both_ways,
                   bool direct);

/// How much later than a transfer the next one of its group from the same sender to the same
/// receiver begins: channels run them one after another, and hide a part of what is beside the
/// wire. 2 to 8 transfers of 4 KiB to 16 MiB, 2 H200s: hw/laboratory/causes/nccl_groups.yaml.
/// `ahead`: how much of the latency is that of transfers further ahead. `both_ways`: of a group
/// that sends and receives.
Duration behind(const Machine& machine, const Cost& cost, Duration ahead, bool both_ways = true);

}  // namespace foretrace::nccl
