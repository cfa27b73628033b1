#include "models/nccl/time/exchange.h"

#include "models/nccl/time/far_time.h"

namespace foretrace::nccl {
namespace {

/// What NCCL's ring gets through each GPU by its own search, where data leave the NVLink.
double path_rate(const Machine& machine, const Tuning& tuning) {
  if (!tuning.leaves_nvlink()) return machine.rate(Param::NcclPortBandwidth);
  return tuning.graphs.ring.channels * double{tuning.graphs.ring.intra_gbps} * 1e9;
}

/// NCCL puts no price on send/recv: the ports' time after the latency of a ring.
Time priced(const Machine& machine, const Tuning& tuning, Protocol protocol, double wire_bytes) {
  const float latency =
      tuning.latency[index_of(Function::AllGather)][index_of(Algorithm::Ring)][index_of(protocol)];
  Time time;
  time.wire_bytes = wire_bytes;
  time.fixed = latency * 1e-6;
  time.ports = wire_bytes / path_rate(machine, tuning);
  time.channel = time.ports;
  time.seconds = time.fixed + time.channel;
  return time;
}

}  // namespace

Exchange exchange_of(CollectiveKind kind) {
  if (kind == CollectiveKind::Gather) return Exchange::Gather;
  return kind == CollectiveKind::Scatter ? Exchange::Scatter : Exchange::AllToAll;
}

ExchangeTime exchange_with_peers(const Machine& machine, const Tuning& tuning, Exchange exchange,
                                 Bytes size, std::uint32_t peers, Peer peer) {
  const Transfer transfer = transfer_of(tuning, size, peer);
  const Choice choice{Algorithm::Ring, transfer.protocol, transfer.channels, kP2pThreads};
  const auto bytes = static_cast<double>(size.count);
  std::optional<Time> measured;
  if (peer == Peer::OtherNode) {
    measured = far_exchange_time(machine, tuning, exchange, bytes);
  } else if (!tuning.leaves_nvlink()) {
    measured = exchange_time(machine, exchange, choice, bytes, peers);
  }
  if (measured) return {choice, *measured};
  return {choice, priced(machine, tuning, transfer.protocol, bytes * peers)};
}

}  // namespace foretrace::nccl
