// What the time of a NCCL kernel is made of, in seconds: the one result that flows, slices, groups
// and explanations are made from.
#pragma once

#include <cstdint>

#include "models/nccl/rules/plan.h"
#include "models/nccl/rules/tuning.h"
#include "scenarios/program/ops.h"

namespace foretrace::nccl {

/// A collective as NcclCollective has it.
struct Call {
  CollectiveKind kind = CollectiveKind::AllReduce;
  Bytes size;
  DataType type = DataType::Float32;
  RedOp op = RedOp::Sum;
  bool direct = false;     ///< its buffers are registered: see registration.h
  std::uint32_t root = 0;  ///< of gather and scatter: whose parts lie one behind the other
  friend auto operator<=>(const Call&, const Call&) = default;
};

/// Which description of the machine gave a time.
enum class Model : std::uint8_t {
  Ring,   ///< around the NVLinks of one node, step by step (ring_time.h)
  Hops,   ///< trees, NVLS, the host's memory, several nodes (hop_time.h)
  Pairs,  ///< sends with their receives (pair_time.h)
  Price   ///< NCCL's own, where the machine file has no times
};

/// Once all ranks have arrived, alone on the machine. `seconds` is all of it.
struct Terms {
  double seconds = 0;
  double fixed_seconds = 0;  ///< from the kernel's begin until the first data leave
  double step_seconds = 0;   ///< ring: what shows of a step; chain: each rank behind the one before
  double steps = 0;          ///< of one pass, the last one's receiving included
  double last_step_seconds = 0;  ///< chain: the last rank behind the one before; of a send
                                 ///< alone: its receiver, which copies the last step
  double hop_seconds = 0;        ///< hops and price: of all hops on the longest way
  double wire_bytes = 0;         ///< through every port that takes part, one direction
  double wire_seconds = 0;       ///< of these bytes, at what NCCL gets through a port
  double network_seconds = 0;    ///< that the NICs of each node are busy, alone on the network
  double channel_seconds = 0;  ///< of a channel, on all its data. Rings and chains: what it adds to
                               ///< the wire; LL's chain: its rounds; else all but fixed and hops
  double drift_seconds = 0;    ///< ring, chain: what channels that drift apart add to the wire...
  double limit_seconds = 0;    ///< ... and what a channel took if its own rate were all
  double port_seconds = 0;     ///< pairs: of a port for all peers, flags included

  /// Chain: the last rank behind the first.
  double chain_seconds() const {
    return steps < 1 ? 0 : (steps - 1) * step_seconds + last_step_seconds;
  }
};

/// What one kernel does for one call.
struct CollectiveTime {
  Model model = Model::Price;
  Choice choice;
  Terms terms;
  Plan plan;  ///< of a collective that NCCL prices; its chunks
};

}  // namespace foretrace::nccl
