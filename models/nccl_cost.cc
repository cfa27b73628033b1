#include "models/nccl_cost.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace foretrace {
namespace {

NcclGraph graph_of(const Machine& machine, std::uint32_t ranks) {
  return {ranks, machine.count(Param::NcclSearchChannels),
          machine.rate(Param::NcclChannelBandwidth) * 1e-9};
}

struct ProtocolParams {
  Param latency, bandwidth;
};

/// Operations that move data alike share their corrections.
ProtocolParams params_of(CollectiveKind kind, NcclProtocol protocol) {
  using enum Param;
  using ByProtocol = std::array<ProtocolParams, 3>;  // LL, LL128, Simple
  static constexpr ByProtocol kAllReduce{
      {{NcclAllReduceLlLatency, NcclAllReduceLlBandwidth},
       {NcclAllReduceLl128Latency, NcclAllReduceLl128Bandwidth},
       {NcclAllReduceSimpleLatency, NcclAllReduceSimpleBandwidth}}};
  static constexpr ByProtocol kGather{{{NcclGatherLlLatency, NcclGatherLlBandwidth},
                                       {NcclGatherLl128Latency, NcclGatherLl128Bandwidth},
                                       {NcclGatherSimpleLatency, NcclGatherSimpleBandwidth}}};
  static constexpr ByProtocol kChain{{{NcclChainLlLatency, NcclChainLlBandwidth},
                                      {NcclChainLl128Latency, NcclChainLl128Bandwidth},
                                      {NcclChainSimpleLatency, NcclChainSimpleBandwidth}}};
  const bool chain = kind == CollectiveKind::Broadcast || kind == CollectiveKind::Reduce;
  const ByProtocol& group = kind == CollectiveKind::AllReduce ? kAllReduce
                            : chain                           ? kChain
                                                              : kGather;
  return group[static_cast<std::size_t>(protocol)];
}

/// NCCL's nBytes of an operation whose NcclCollective::size is `size`.
Bytes whole_vector(CollectiveKind kind, Bytes size, std::uint32_t ranks) {
  switch (kind) {
    case CollectiveKind::AllReduce:
    case CollectiveKind::Broadcast:
    case CollectiveKind::Reduce:
      return size;
    default:
      return {size.count * ranks};
  }
}

/// Bytes through one port and direction: nccl-tests' bus factor.
double bus_bytes(CollectiveKind kind, double bytes, double ranks) {
  if (kind == CollectiveKind::AllReduce) return bytes * 2 * (ranks - 1) / ranks;
  if (kind == CollectiveKind::Broadcast || kind == CollectiveKind::Reduce) return bytes;
  return bytes * (ranks - 1) / ranks;
}

/// Simple moves large chunks through a pipeline of steps; `wire` bytes cross one port.
Duration pipeline_fill(const Machine& machine, NcclProtocol protocol, double wire) {
  if (protocol != NcclProtocol::Simple) return Duration{0};
  const double part = std::min(1.0, wire / machine.get(Param::NcclSimpleRampSize).value);
  return seconds_to_duration(machine.get(Param::NcclSimpleRamp).value * part);
}

}  // namespace

NcclCost collective_cost(const Machine& machine, CollectiveKind kind, Bytes size,
                         std::uint32_t ranks) {
  const NcclGraph graph = graph_of(machine, ranks);
  const Bytes bytes = whole_vector(kind, size, ranks);
  NcclCost cost;
  cost.choice = nccl_choose(graph, kind, bytes);
  const auto prices = nccl_prices(graph, kind, bytes);
  const auto price = std::ranges::find_if(prices, [&](const NcclPrice& p) {
    return p.algorithm == cost.choice.algorithm && p.protocol == cost.choice.protocol;
  });
  const ProtocolParams params = params_of(kind, cost.choice.protocol);
  cost.latency = seconds_to_duration(price->latency_us * 1e-6 * machine.get(params.latency).value);
  cost.latency += pipeline_fill(machine, cost.choice.protocol,
                                bus_bytes(kind, static_cast<double>(bytes.count), ranks));
  const double seconds = static_cast<double>(bytes.count) /
                         (price->bandwidth_gbps * 1e9 * machine.get(params.bandwidth).value);
  cost.wire_bytes = {
      static_cast<std::uint64_t>(std::llround(seconds * machine.rate(Param::NvlinkBandwidth)))};
  return cost;
}

NcclCost send_recv_cost(const Machine& machine, Bytes size, std::uint32_t ranks) {
  NcclCost cost;
  cost.choice = nccl_choose_p2p(graph_of(machine, ranks), size);
  cost.latency = machine.time(cost.choice.protocol == NcclProtocol::LL ? Param::NcclP2pLatencyLl
                                                                       : Param::NcclP2pLatency);
  cost.latency += pipeline_fill(machine, cost.choice.protocol, static_cast<double>(size.count));
  const double nvlink = machine.rate(Param::NvlinkBandwidth);
  const double per_channel =
      machine.rate(cost.choice.protocol == NcclProtocol::LL ? Param::NcclP2pChannelBandwidthLl
                                                            : Param::NcclP2pChannelBandwidth);
  const double rate = std::min(per_channel * cost.choice.channels, nvlink);
  cost.wire_bytes = {
      static_cast<std::uint64_t>(std::llround(static_cast<double>(size.count) * nvlink / rate))};
  return cost;
}

}  // namespace foretrace
