// How long send/recv takes, and all_to_all, gather and scatter, which are made of it: near and far
// peers, from the machine file or, where it has no times, from NCCL's own numbers.
#pragma once

#include "models/nccl/rules/p2p.h"
#include "models/nccl/time/time.h"

namespace foretrace::nccl {

/// all_to_all, gather or scatter.
Exchange exchange_of(CollectiveKind kind);

/// What one rank's kernel does with `peers` others at once, `size` with each.
struct ExchangeTime {
  Choice choice;  ///< channels of one transfer
  Time time;
};
ExchangeTime exchange_with_peers(const Machine& machine, const Tuning& tuning, Exchange exchange,
                                 Bytes size, std::uint32_t peers, Peer peer);

}  // namespace foretrace::nccl
