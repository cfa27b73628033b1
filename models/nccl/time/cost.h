// What one NCCL operation costs on the GPUs: NCCL's own choice of algorithm, protocol and channels
// (rules/plan.h, rules/p2p.h), and times measured on this machine (time.h); NCCL's own price where
// a machine file has none.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "models/machine/machine.h"
#include "models/nccl/rules/p2p.h"
#include "models/nccl/rules/tuning.h"
#include "scenarios/program/ops.h"

namespace foretrace::nccl {

/// One operation as its ranks run it once all of them have arrived: `latency`, then `wire_bytes`
/// through every NVLink port that takes part.
struct Cost {
  Choice choice;
  Duration latency;
  Bytes wire_bytes;  ///< per port and direction, in units of the port's full bandwidth: what NCCL
                     ///< gets through a port counts as all of it
};

struct Time;

/// NCCL's nBytes of an operation whose NcclCollective::size is `size`.
Bytes vector_bytes(CollectiveKind kind, Bytes size, std::uint32_t ranks);

/// The time beside the wire is latency; the rest is traffic that others may slow down.
Cost cost_of(const Machine& machine, const Choice& choice, const Time& time);

/// `size` as in NcclCollective::size.
Cost collective_cost(const Machine& machine, const Tuning& tuning, CollectiveKind kind, Bytes size,
                     DataType type = DataType::Float32, RedOp op = RedOp::Sum);

/// One send and its receive; `both_ways` when the group sends and receives.
Cost send_recv_cost(const Machine& machine, const Tuning& tuning, Bytes size, bool both_ways,
                    Peer peer = Peer::SameNode);

/// What the scenario's environment and the machine (multicast or not) make NCCL choose for this
/// many ranks on so many nodes. Throws UsageError.
Tuning tuning_for(const Machine& machine, std::uint32_t ranks, std::uint32_t nodes,
                  const std::map<std::string, std::string>& environment);

}  // namespace foretrace::nccl
