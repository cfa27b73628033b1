// The constants of NCCL's tuning model, one table per set of rules. Each value carries the place in
// NCCL's source that it was read from.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "models/nccl/rules/types.h"

namespace foretrace::nccl {

/// What connects two ranks, as the latency tables know it.
enum class Hop : std::uint8_t { NvLink, Pci, Net };
inline constexpr std::size_t kHops = 3;

/// Columns of the bandwidth tables: one node, two, more.
using PerScale = std::array<double, 3>;
using PerGeneration = std::array<PerScale, kGpuGenerations>;

inline constexpr std::size_t kTreeCorrections = 27;  ///< NCCL uses 24 of them

struct Constants {
  Version since;
  // src/graph/tuning.cc, microseconds
  PerAlgorithm<double> base_latency;
  std::array<PerAlgorithm<double>, kHops> hop_latency;
  // src/graph/tuning.cc, GB/s
  PerGeneration ll_max;  ///< row: the GPU's generation on one node, else Intel, AMD
  PerGeneration ring_ll128_per_channel;
  PerGeneration tree_ll128_per_channel;
  PerGeneration tree_per_channel;
  PerGeneration nvls_tree_per_channel;  ///< from 2.28
  std::array<float, kGpuGenerations> nvls_efficiency;
  bool nvls_by_ring_ratio;  ///< 2.28: NVLS bandwidth by efficiency and n/nsteps; before: times 5/6
  bool nvls_gathers_apart;  ///< 2.27: NVLS' all-gather and reduce-scatter have a bandwidth of their
                            ///< own
  bool gathers_at_bus_rate;  ///< 2.23: theirs, but by rings, is the bus bandwidth
  bool has_nvls_gathers;     ///< 2.19
  bool old_nvls_tree;        ///< before 2.19: a latency for each node, 7/10 of the bandwidth
  double ring_ll_share;  ///< of the ring's bandwidth that LL gets: over nodes, and where it reduces
  double ring_ll_share_else;
  double ring_ll128_alone;  ///< the same of LL128 with one GPU for each node
  bool crosses_once_more;  ///< before 2.23: an all-reduce's ring counts two hops more between nodes
  bool alone_has_tree_latency;  ///< 2.23: one GPU for each node: the tree's latency between nodes
  double pat_share;             ///< 0: no PAT
  std::array<std::array<float, kTreeCorrections>, kProtocols> tree_correction;
  bool corrects_nvls_tree;  ///< 2.29, Blackwell on x86
  // src/graph/search.cc, GB/s per channel
  std::span<const float> speeds_within_blackwell;
  std::span<const float> speeds_between_blackwell;
  // src/enqueue.cc
  std::uint64_t min_traffic_per_channel;
  bool p2p_ll_by_channels;  ///< 2.29: send/recv takes LL by what one channel moves, else by peer
  // src/graph/paths.cc
  bool p2p_net_channels_by_bandwidth;  ///< 2.29
  bool is_rccl = false;                ///< rules/rccl.h
};

/// The rules of a release.
const Constants& constants_of(Version version);

}  // namespace foretrace::nccl
