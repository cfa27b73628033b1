// NCCL's own rules: which algorithm, protocol, channels and threads it takes for an operation, and
// the price it puts on each candidate. Constants are keyed by NCCL version and carry the place in
// NCCL's source that they were read from.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "scenarios/ops.h"
#include "scenarios/units.h"

namespace foretrace {

enum class NcclAlgorithm : std::uint8_t { Tree, Ring };
enum class NcclProtocol : std::uint8_t { LL, LL128, Simple };

std::string_view name_of(NcclAlgorithm algorithm);
std::string_view name_of(NcclProtocol protocol);

/// What NCCL's topology search found for one communicator.
struct NcclGraph {
  std::uint32_t ranks = 2;
  std::uint32_t search_channels = 12;  ///< "Pattern 4 ... nChannels" of the ring graph
  double channel_gbps = 30;            ///< its bandwidth per channel, GB/s
};

struct NcclChoice {
  NcclAlgorithm algorithm = NcclAlgorithm::Ring;
  NcclProtocol protocol = NcclProtocol::Simple;
  std::uint32_t channels = 1;   ///< CTAs of the kernel
  std::uint32_t threads = 512;  ///< per CTA
};

/// One candidate's price, as NCCL computes it.
struct NcclPrice {
  NcclAlgorithm algorithm;
  NcclProtocol protocol;
  double latency_us;
  double bandwidth_gbps;  ///< algorithm bandwidth
  double time_us;
};

/// `bytes` is NCCL's nBytes: the whole vector (all_gather: gathered; reduce_scatter: the input).
std::vector<NcclPrice> nccl_prices(const NcclGraph& graph, CollectiveKind kind, Bytes bytes);

NcclChoice nccl_choose(const NcclGraph& graph, CollectiveKind kind, Bytes bytes);

/// Send/recv: channels of one transfer, and its protocol.
NcclChoice nccl_choose_p2p(const NcclGraph& graph, Bytes bytes);

}  // namespace foretrace
