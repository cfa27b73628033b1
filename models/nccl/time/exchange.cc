#include "models/nccl/time/exchange.h"

#include "models/nccl/time/far_time.h"

namespace foretrace {
namespace {

/// What NCCL's ring gets through each GPU by its own search, where data leave the NVLink.
double path_rate(const Machine& machine, const NcclTuning& tuning) {
  if (!tuning.leaves_nvlink()) return machine.rate(Param::NcclPortBandwidth);
  return tuning.graphs.ring.channels * double{tuning.graphs.ring.intra_gbps} * 1e9;
}

/// NCCL puts no price on send/recv: the ports' time after the latency of a ring.
NcclTime priced(const Machine& machine, const NcclTuning& tuning, NcclProtocol protocol,
                double wire_bytes) {
  const float latency = tuning.latency[nccl_index(NcclFunction::AllGather)]
                                      [nccl_index(NcclAlgorithm::Ring)][nccl_index(protocol)];
  NcclTime time;
  time.wire_bytes = wire_bytes;
  time.fixed = latency * 1e-6;
  time.ports = wire_bytes / path_rate(machine, tuning);
  time.channel = time.ports;
  time.seconds = time.fixed + time.channel;
  return time;
}

}  // namespace

NcclExchange nccl_exchange_of(CollectiveKind kind) {
  if (kind == CollectiveKind::Gather) return NcclExchange::Gather;
  return kind == CollectiveKind::Scatter ? NcclExchange::Scatter : NcclExchange::AllToAll;
}

NcclExchangeTime nccl_exchange(const Machine& machine, const NcclTuning& tuning,
                               NcclExchange exchange, Bytes size, std::uint32_t peers,
                               NcclPeer peer) {
  const NcclTransfer transfer = nccl_transfer(tuning, size, peer);
  const NcclChoice choice{NcclAlgorithm::Ring, transfer.protocol, transfer.channels, kP2pThreads};
  const auto bytes = static_cast<double>(size.count);
  std::optional<NcclTime> measured;
  if (peer == NcclPeer::OtherNode) {
    measured = nccl_far_exchange_time(machine, tuning, exchange, bytes);
  } else if (!tuning.leaves_nvlink()) {
    measured = nccl_exchange_time(machine, exchange, choice, bytes, peers);
  }
  if (measured) return {choice, *measured};
  return {choice, priced(machine, tuning, transfer.protocol, bytes * peers)};
}

}  // namespace foretrace
