// What collectives cost that one kernel runs together: all calls of a group on one communicator.
#pragma once

#include <vector>

#include "models/nccl/time/cost.h"

namespace foretrace {

/// A collective as NcclCollective has it, but no send/recv in disguise (is_send_recv).
struct NcclGroupCall {
  CollectiveKind kind = CollectiveKind::AllReduce;
  Bytes size;
  DataType type = DataType::Float32;
  RedOp op = RedOp::Sum;
  friend bool operator==(const NcclGroupCall&, const NcclGroupCall&) = default;
};

/// Each call's part, in their order. NCCL deals the calls out over the kernel's channels, and a
/// channel runs its parts of several calls one after another: the busiest channel's time beside the
/// wire becomes everybody's latency, and the wires of all add up on the ports. Where that is not
/// known (trees, NVLS, several nodes, a machine file without times), each costs what it does alone.
std::vector<NcclCost> nccl_group_cost(const Machine& machine, const NcclTuning& tuning,
                                      const std::vector<NcclGroupCall>& calls);

}  // namespace foretrace
