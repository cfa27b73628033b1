// How long send/recv takes, and all_to_all, gather and scatter, which are made of it: near and far
// peers, from the machine file or, where it has no times, from NCCL's own numbers.
#pragma once

#include "models/nccl/rules/p2p.h"
#include "models/nccl/time/time.h"

namespace foretrace {

/// all_to_all, gather or scatter.
NcclExchange nccl_exchange_of(CollectiveKind kind);

/// What one rank's kernel does with `peers` others at once, `size` with each.
struct NcclExchangeTime {
  NcclChoice choice;  ///< channels of one transfer
  NcclTime time;
};
NcclExchangeTime nccl_exchange(const Machine& machine, const NcclTuning& tuning,
                               NcclExchange exchange, Bytes size, std::uint32_t peers,
                               NcclPeer peer);

}  // namespace foretrace
