#include "models/nccl/rules/p2p.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include "scenarios/base/text/errors.h"

namespace foretrace::nccl {
namespace {

using enum Number;
constexpr std::uint32_t kPerBatch = 8;  // transfers that share a CTA

/// NCCL sends chunk sizes in eight bits: a leading one and three bits below it
/// (src/include/bitops.h).
std::uint64_t in_eight_bits(std::uint64_t value) {
  const auto bits = static_cast<int>(std::bit_width(value));
  if (bits <= 4) return value;
  return value >> (bits - 4) << (bits - 4);
}

/// Ranks of a node that the schedule keeps together.
std::uint32_t schedule_group(const Topology& topology) {
  return topology.nodes == 1 ? topology.gpus_per_node : std::gcd(kPerBatch, topology.gpus_per_node);
}

/// src/include/channel.h: where a round's channels begin; neighbouring rounds begin far apart.
std::uint32_t first_channel(const Tuning& tuning, std::uint32_t round) {
  std::uint32_t base = round;
  if (tuning.topology.nodes > 1) {
    const std::uint32_t group = schedule_group(tuning.topology);
    base = static_cast<std::uint32_t>(round / group * divide_up(group, kPerBatch) +
                                      round % group / kPerBatch);
  }
  const auto bits = static_cast<int>(std::bit_width(tuning.p2p_channels)) - 1;
  std::uint32_t reversed = 0;
  // Eight bits are reversed, of which the upper ones stay.
  for (int bit = 0; bit < 8; ++bit) reversed |= (base >> bit & 1u) << (7 - bit);
  return bits >= 8 ? reversed : reversed >> (8 - bits);
}

Peer peer_of_round(const Tuning& tuning, std::uint32_t round) {
  if (round == 0) return Peer::Self;
  const bool inside = round < schedule_group(tuning.topology);
  return inside ? Peer::SameNode : Peer::OtherNode;
}

/// Channels for a peer on the same node.
std::uint32_t local_channels(const Tuning& tuning) {
  const Graphs& graphs = tuning.graphs;
  if (graphs.gpu_path != Path::Nvl) return 2;
  const auto links =
      static_cast<std::uint32_t>(graphs.gpu_gbps / nvlink_gbps(tuning.topology.capability));
  return 2 * std::max(1u, links);
}

/// Channels for a peer across the network.
std::uint32_t network_channels(const Tuning& tuning, std::uint32_t p2p_channels) {
  const Topology& topology = tuning.topology;
  const std::int64_t set = tuning.settings.get(ChannelsPerNetPeer, 0);
  if (set > 0) return static_cast<std::uint32_t>(std::min<std::int64_t>(set, kMaxChannels));
  const std::uint32_t nics = std::max(1u, topology.nics / topology.gpus_per_node);
  if (tuning.constants->p2p_net_channels_by_bandwidth) {
    constexpr std::uint64_t kPerChannel = 14;  // GB/s, NCCL_P2P_PER_CHANNEL_NET_BW
    const float gbps = static_cast<float>(nics) * std::min(topology.nic_gbps, topology.pci_gbps);
    return std::max(
        nics, static_cast<std::uint32_t>(divide_up(static_cast<std::uint64_t>(gbps), kPerChannel)));
  }
  std::uint32_t most = 2;
  while (most * tuning.ranks() > p2p_channels * 4 && most > 1) most /= 2;
  return std::max(nics, most);
}

}  // namespace

void set_p2p_channels(Tuning& tuning) {
  const Settings& settings = tuning.settings;
  const auto number = [&](Number setting, std::int64_t otherwise) {
    return static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(settings.get(setting, otherwise), 1, kMaxChannels));
  };
  const std::uint32_t all = std::max(
      std::min(tuning.channels, number(MaxP2pChannels, kMaxChannels)), number(MinP2pChannels, 1));
  const bool several = tuning.topology.nodes > 1;
  const bool newer = tuning.constants->p2p_net_channels_by_bandwidth;
  std::uint32_t peer = newer ? kMaxChannels : all;
  if (tuning.topology.gpus_per_node > 1) peer = std::min(peer, local_channels(tuning));
  if (several) peer = std::min(peer, network_channels(tuning, all));
  peer = std::bit_ceil(peer);
  tuning.p2p_channels = std::bit_ceil(all);
  if (newer && several && !settings.has(ChannelsPerNetPeer)) {
    const auto batches = static_cast<std::uint32_t>(divide_up(tuning.ranks(), kPerBatch));
    while (peer * batches > tuning.p2p_channels && peer > 1) peer /= 2;
  }
  tuning.p2p_channels_per_peer = std::min(peer, tuning.p2p_channels);
}

Transfer transfer_of(const Tuning& tuning, Bytes bytes, Peer peer) {
  const auto threshold = static_cast<std::uint64_t>(tuning.settings.get(P2pLlThreshold, 16384));
  const std::uint32_t most = tuning.p2p_channels_per_peer;
  std::uint32_t start = most;
  while (start * tuning.ranks() > tuning.p2p_channels && start > 1) start /= 2;
  const auto step_of = [&](Protocol protocol) {
    return protocol == Protocol::Simple ? tuning.p2p_chunk_bytes
                                        : tuning.buffer_bytes[index_of(protocol)] / kBufferSteps;
  };
  Transfer transfer;
  const auto spread = [&](std::uint64_t step) {
    const bool several = tuning.topology.nodes > 1;
    const std::uint64_t least = several ? step / 2 : step / 8;
    const std::uint64_t largest = several ? step : step * 32;
    std::uint64_t channels = 1;
    if (bytes.count > 0) {
      channels = std::min<std::uint64_t>(start, divide_up(bytes.count, least));
      std::uint64_t part = std::max(least, divide_up(bytes.count, channels));
      while (part > largest && channels <= most / 2) {
        channels *= 2;
        part = divide_up(bytes.count, channels);
      }
    }
    transfer.channels = static_cast<std::uint32_t>(channels);
  };
  // Over the network LL has no buffers, and a rank copies to itself by Simple.
  bool ll = peer == Peer::SameNode;
  if (tuning.constants->p2p_ll_by_channels) {
    spread(step_of(Protocol::Simple));
    ll = ll && bytes.count <= transfer.channels * threshold;
  } else {
    ll = ll && bytes.count <= most * threshold;
    spread(step_of(ll ? Protocol::LL : Protocol::Simple));
  }
  transfer.protocol = ll ? Protocol::LL : Protocol::Simple;
  transfer.part_bytes = divide_up(bytes.count, transfer.channels);
  const std::uint64_t step = step_of(transfer.protocol);
  std::uint64_t chunk = step;
  const auto set = static_cast<std::uint64_t>(tuning.settings.get(ChunkSize, 0));
  if (set != 0) {
    chunk = set;
  } else if (peer == Peer::OtherNode) {
    if (bytes.count < step) {
      chunk /= 4;
    } else if (bytes.count < 8 * step) {
      chunk /= 2;
    }
  }
  transfer.chunk_bytes = in_eight_bits(ll ? chunk / 2 : chunk);
  return transfer;
}

std::uint64_t p2p_mask(const Tuning& tuning, std::span<const Round> transfers) {
  std::uint64_t taken = 0;
  for (const Round& transfer : transfers) {
    const std::uint32_t base = first_channel(tuning, transfer.round);
    const Peer peer = peer_of_round(tuning, transfer.round);
    const std::uint32_t parts = transfer_of(tuning, transfer.bytes, peer).channels;
    for (std::uint32_t part = 0; part < parts; ++part) {
      taken |= std::uint64_t{1} << ((base + part) & (tuning.p2p_channels - 1));
    }
  }
  return taken;
}

std::uint32_t p2p_channels(const Tuning& tuning, std::span<const Round> transfers) {
  return static_cast<std::uint32_t>(std::popcount(p2p_mask(tuning, transfers)));
}

std::vector<Round> exchange_rounds(const Tuning& tuning, Bytes bytes) {
  std::vector<Round> rounds;
  for (std::uint32_t round = 0; round < tuning.ranks(); ++round) rounds.push_back({round, bytes});
  return rounds;
}

std::uint32_t exchange_channels(const Tuning& tuning, Bytes bytes) {
  return p2p_channels(tuning, exchange_rounds(tuning, bytes));
}

}  // namespace foretrace::nccl
