#include "models/nccl/time/collective_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "models/nccl/time/hop_time.h"
#include "models/nccl/time/network.h"
#include "models/nccl/time/pair_time.h"
#include "models/nccl/time/ring_time.h"
#include "models/nccl/topology/machine.h"

namespace foretrace::nccl {
namespace {

/// Where NCCL's search finds no channel it takes one in the order of the GPUs, with a bandwidth
/// that only makes it the last choice (nccl src/graph/search.cc, 0.1 GB/s): the slowest path's is
/// that of the data, or of all NICs of a node.
double seconds_without_channels(const Tuning& tuning, CollectiveKind kind, double bytes) {
  constexpr float kNone = 0.2F;
  const SearchGraph& ring = tuning.graphs.ring;
  const Topology& topology = tuning.topology;
  if (ring.intra_gbps >= kNone) return 0;
  const double nics = double{topology.nic_gbps} * topology.nics, path = tuning.graphs.gpu_gbps;
  const double gbps = topology.nodes == 1          ? path
                      : topology.gpus_per_node > 1 ? std::min(path, nics)
                                                   : nics;
  return gbps > 0 ? bus_bytes(kind, bytes, tuning.ranks()) / (gbps * 1e9) : 0;
}

/// NCCL's own price: its latency is that of the hops beyond the base, its bandwidth the channels'.
Terms price_terms(Reading& read, const Tuning& tuning, CollectiveKind kind, Bytes bytes,
                  const Plan& plan) {
  const double ranks = tuning.ranks();
  const double latency = plan.latency_us * 1e-6;
  const double base =
      tuning.constants->base_latency[index_of(plan.algorithm)][index_of(plan.protocol)] * 1e-6;
  Terms terms;
  terms.seconds = plan.price_us * 1e-6;
  terms.fixed_seconds = std::min(latency, base);
  terms.hop_seconds = latency - terms.fixed_seconds;
  terms.channel_seconds = std::max(0.0, terms.seconds - latency);
  if (const double by_path =
          seconds_without_channels(tuning, kind, static_cast<double>(bytes.count));
      by_path > 0) {
    terms.channel_seconds = by_path;
    terms.seconds = latency + by_path;
  }
  const double others = terms.seconds - terms.channel_seconds;
  terms.channel_seconds /=
      slot_factor(read, tuning) * host_path_factor(read, tuning, Param::NcclHostPathRing);
  terms.seconds = others + terms.channel_seconds;
  terms.wire_bytes = static_cast<double>(bytes.count) * 2 * (ranks - 1) / ranks;
  terms.wire_seconds = terms.wire_bytes / read.rate(Param::NcclPortShare);
  return terms;
}

/// Which part of a GPU's NVLinks leads to the ranks: on a board without switches, those to the
/// GPUs that take part.
double links_to_ranks(const Topology& topology) {
  if (topology.link != Link::NvLinkMesh) return 1;
  const double peers = std::max(topology.mesh_gpus, 2U) - 1.0;
  return std::min(1.0, (topology.gpus_per_node - 1) / peers);
}

}  // namespace

Bytes vector_bytes(CollectiveKind kind, Bytes size, std::uint32_t ranks) {
  const bool parts = kind == CollectiveKind::AllGather || kind == CollectiveKind::ReduceScatter;
  return {parts ? size.count * ranks : size.count};
}

CollectiveTime planned_time(Reading& read, const Tuning& tuning, CollectiveKind kind, Bytes bytes,
                            const Plan& plan) {
  CollectiveTime time;
  time.plan = plan;
  time.choice = {plan.algorithm, plan.protocol, plan.channels, plan.threads, plan.direct};
  if (tuning.constants->is_rccl) {  // nothing of it was measured
    time.terms = price_terms(read, tuning, kind, bytes, plan);
    return time;
  }
  const bool ring = tuning.stays_on_nvlink() && plan.algorithm == Algorithm::Ring;
  const auto measured = ring ? ring_time(read, kind, time.choice, bytes, tuning.ranks(),
                                         links_to_ranks(tuning.topology))
                             : hop_time(read, tuning, kind, time.choice, bytes);
  if (measured) {
    const bool known = tuning.topology.nodes == 1 || Network{read, tuning.topology}.is_known();
    time.model = ring ? Model::Ring : known ? Model::Hops : Model::Price;
    time.terms = *measured;
    limit_by_next(read, tuning, kind, bytes, plan, time.terms);
  } else {
    time.terms = price_terms(read, tuning, kind, bytes, plan);
  }
  return time;
}

CollectiveTime collective_time(Reading& read, const Tuning& tuning, const Call& call) {
  const std::uint32_t ranks = tuning.ranks();
  if (is_send_recv(call.kind)) {
    const Peer peer = tuning.topology.nodes > 1 ? Peer::OtherNode : Peer::SameNode;
    return pair_time(read, tuning, exchange_of(call.kind), call.size, ranks - 1, peer, call.direct,
                     call.root);
  }
  const Bytes bytes = vector_bytes(call.kind, call.size, ranks);
  const Plan plan =
      plan_of(tuning, {function_of(call.kind), bytes, call.type, call.op, 1, call.direct});
  return planned_time(read, tuning, call.kind, bytes, plan);
}

CollectiveTime send_recv_time(Reading& read, const Tuning& tuning, Bytes size, bool both_ways,
                              Peer peer, bool direct) {
  const Exchange exchange = both_ways ? Exchange::SendRecv : Exchange::OneWay;
  return pair_time(read, tuning, exchange, size, 1, peer, direct);
}

Tuning tuning_for(const Machine& machine, std::uint32_t ranks, std::uint32_t nodes,
                  const std::map<std::string, std::string>& environment) {
  std::vector<std::string> settings;
  const bool no_multicast = machine.has(Param::NcclNvls) && machine.get(Param::NcclNvls).value == 0;
  if (no_multicast) settings.emplace_back("NCCL_NVLS_ENABLE=0");  // the scenario's own comes later
  for (const auto& [name, value] : environment) {
    if (name.starts_with("NCCL_")) settings.push_back(fmt::format("{}={}", name, value));
  }
  return tuning_of(machine, ranks, nodes, Settings{settings});
}

}  // namespace foretrace::nccl
