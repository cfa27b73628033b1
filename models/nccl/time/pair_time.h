// How long send/recv takes, and all_to_all, gather and scatter, which are made of it: with peers
// on the same node and on others, from the machine file or, where it has no times, from NCCL's own
// numbers.
#pragma once

#include "models/machine/reading.h"
#include "models/nccl/rules/p2p.h"
#include "models/nccl/time/params.h"
#include "models/nccl/time/terms.h"

namespace foretrace::nccl {

/// What one rank's kernel does with `peers` others at once, `size` with each. `choice.channels` are
/// those of one transfer. `direct`: the buffers of both sides are registered. `root`: of gather and
/// scatter.
CollectiveTime pair_time(Reading& read, const Tuning& tuning, Exchange exchange, Bytes size,
                         std::uint32_t peers, Peer peer, bool direct = false,
                         std::uint32_t root = 0);

/// How much faster the slots of GPUs on PCIe alone are than their generation says (a what-if):
/// NCCL's own prices know the generation. 1 elsewhere, and between nodes.
double slot_factor(Reading& read, const Tuning& tuning);

/// GPUs of a node that reach each other through the host alone share its paths: what each gets of
/// what is counted of its own, by `share` (nccl.host_path.*). 1 elsewhere.
double host_path_factor(Reading& read, const Tuning& tuning, Param share);

}  // namespace foretrace::nccl
