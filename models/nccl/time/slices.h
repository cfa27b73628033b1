// NCCL operations slice by slice: in how many passes, steps and slices an operation's channels move
// its bytes (rules/chunks.h, rules/p2p.h), and what a slice costs its channels and the ports. All
// times come from the terms that time.h adds up for the whole operation, or from NCCL's own price
// where the machine file has none; there is no second calibration.
//
// The channels of an operation are folded into one with their mean share: NCCL's first and last
// channel move a little less or more, which the measured times do not tell apart either.
#pragma once

#include <cstdint>
#include <limits>

#include "models/nccl/time/collective_time.h"

namespace foretrace::nccl {

/// Who passes slices on to whom.
enum class Shape : std::uint8_t {
  Ring,   ///< all_reduce, all_gather, reduce_scatter: each rank to the next one
  Chain,  ///< broadcast and reduce: from one end of the ring's order to the other
  Tree,   ///< up to the root and down again
  Pairs,  ///< send/recv, all_to_all, gather, scatter: every sender to its receiver
  Whole   ///< NVLS, CollNet, PAT: not run by slices
};

/// How finely transfers take turns on a port, in our model: no slice of the kinds that stream (all
/// but rings) is longer, and longer ones of rings give way after so many bytes to others that wait.
double port_turn_bytes();

/// Slices that are alike, in seconds; of all folded channels together.
struct Pass {
  std::uint64_t count = 0;     ///< passes over the ring; 1 otherwise
  std::uint32_t slices = 1;    ///< of each step
  double before_seconds = 0;   ///< a step's fixed part: before the slice asks for the port
  double work_seconds = 0;     ///< the channel's, beside the port: a slice is not through sooner
  double port_seconds = 0;     ///< how long the slice takes the sender's and the receiver's port
  double receive_seconds = 0;  ///< of a step that only receives
  double nic_seconds = 0;      ///< between nodes: of the NICs that it goes through
};

struct Slices {
  Shape shape = Shape::Whole;
  std::uint32_t steps = 1;   ///< ring: sends of each rank in a pass; it receives as often
  double fixed_seconds = 0;  ///< from a kernel's begin to its first slice
  double hop_seconds = 0;    ///< chain and tree: over all hops of the longest way
  /// The longest that a slice holds a port: port_turn_bytes() of it.
  double turn_seconds = std::numeric_limits<double>::infinity();
  Pass full, last;           ///< the passes with whole chunks, and what is left over for the last
  std::uint64_t window = 8;  ///< slices that a channel's buffer holds: the sender's credits
};

Slices collective_slices(const Machine& machine, const Tuning& tuning, const Call& call);

/// One send and its receive; as send_recv_cost.
Slices send_recv_slices(const Machine& machine, const Tuning& tuning, Bytes size, bool both_ways,
                        Peer peer = Peer::SameNode, bool direct = false);

}  // namespace foretrace::nccl
