// What collectives cost that one kernel runs together: all calls of a group on one communicator.
#pragma once

#include <vector>

#include "models/nccl/time/cost.h"

namespace foretrace::nccl {

/// A collective as NcclCollective has it, but no send/recv in disguise (is_send_recv).
struct GroupCall {
  CollectiveKind kind = CollectiveKind::AllReduce;
  Bytes size;
  DataType type = DataType::Float32;
  RedOp op = RedOp::Sum;
  friend bool operator==(const GroupCall&, const GroupCall&) = default;
};

/// Each call's part, in their order. NCCL deals the calls out over the kernel's channels, and a
/// channel runs its parts of several calls one after another: the busiest channel's time beside the
/// wire becomes everybody's latency, and the wires of all add up on the ports. Where that is not
/// known (trees, NVLS, several nodes, a machine file without times), each costs what it does alone.
std::vector<Cost> group_cost(const Machine& machine, const Tuning& tuning,
                             const std::vector<GroupCall>& calls);

}  // namespace foretrace::nccl
