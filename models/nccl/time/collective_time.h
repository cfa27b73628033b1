// How long a NCCL operation takes, and what of: NCCL's own choice of algorithm, protocol and
// channels (rules/plan.h, rules/p2p.h), and the machine's times for it. The one place that decides
// which description of the machine holds; flows (cost.h), slices, groups and bands follow it.
#pragma once

#include <map>
#include <string>

#include "models/nccl/time/pair_time.h"
#include "models/nccl/time/terms.h"

namespace foretrace::nccl {

/// NCCL's nBytes of an operation whose NcclCollective::size is `size`.
Bytes vector_bytes(CollectiveKind kind, Bytes size, std::uint32_t ranks);

CollectiveTime collective_time(Reading& read, const Tuning& tuning, const Call& call);

/// The same where the choice is made: of a call in a group, or on some of its channels. `bytes` is
/// NCCL's nBytes; `plan` is what NCCL chose for them.
CollectiveTime planned_time(Reading& read, const Tuning& tuning, CollectiveKind kind, Bytes bytes,
                            const Plan& plan);

/// One send and its receive; `both_ways` when the group sends and receives. `direct`: both buffers
/// are registered.
CollectiveTime send_recv_time(Reading& read, const Tuning& tuning, Bytes size, bool both_ways,
                              Peer peer = Peer::SameNode, bool direct = false);

/// What the scenario's environment and the machine (multicast or not) make NCCL choose for this
/// many ranks on so many nodes. Throws UsageError.
Tuning tuning_for(const Machine& machine, std::uint32_t ranks, std::uint32_t nodes,
                  const std::map<std::string, std::string>& environment);

}  // namespace foretrace::nccl
