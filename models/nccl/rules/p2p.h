// Send/recv, and what is made of it: protocol, channels and chunks of one transfer, and the
// channels that all transfers of a kernel take together (nccl src/enqueue.cc, addP2pToPlan).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/nccl/rules/tuning.h"

namespace foretrace::nccl {

inline constexpr std::uint32_t kP2pThreads = 640;  ///< of each CTA of a send/recv kernel

enum class Peer : std::uint8_t { SameNode, OtherNode, Self };

struct Transfer {
  Protocol protocol = Protocol::Simple;
  std::uint32_t channels = 1;
  std::uint64_t part_bytes = 0;   ///< of one channel
  std::uint64_t chunk_bytes = 0;  ///< payload of one step
};

/// One send with its receive.
Transfer transfer_of(const Tuning& tuning, Bytes bytes, Peer peer = {});

/// A transfer and its place in NCCL's schedule: in round r of one node, rank i sends to rank i + r.
struct Round {
  std::uint32_t round = 0;
  Bytes bytes;
};

/// The channels, one bit each, of the kernel that runs these transfers together.
std::uint64_t p2p_mask(const Tuning& tuning, std::span<const Round> transfers);
/// Its CTAs.
std::uint32_t p2p_channels(const Tuning& tuning, std::span<const Round> transfers);

/// The transfers of all_to_all, and of the root of gather and scatter: `bytes` with every rank,
/// itself included.
std::vector<Round> exchange_rounds(const Tuning& tuning, Bytes bytes);
/// Their CTAs.
std::uint32_t exchange_channels(const Tuning& tuning, Bytes bytes);

/// nccl src/graph/paths.cc, ncclTopoComputeP2pChannels.
void set_p2p_channels(Tuning& tuning);

}  // namespace foretrace::nccl
