#include "models/nccl/time/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/nccl/rules/p2p.h"
#include "models/nccl/rules/plan.h"
#include "models/nccl/time/exchange.h"
#include "models/nccl/time/far_time.h"
#include "models/nccl/time/time.h"
#include "models/nccl/topology/machine.h"

namespace foretrace {

Bytes nccl_vector(CollectiveKind kind, Bytes size, std::uint32_t ranks) {
  const bool parts = kind == CollectiveKind::AllGather || kind == CollectiveKind::ReduceScatter;
  return {parts ? size.count * ranks : size.count};
}

NcclCost nccl_cost_of(const Machine& machine, const NcclChoice& choice, const NcclTime& time) {
  const double port = machine.rate(Param::NcclPortBandwidth);
  const double wire = std::min(time.seconds, time.wire_bytes / port);
  NcclCost cost;
  cost.choice = choice;
  cost.latency = seconds_to_duration(time.seconds - wire);
  cost.wire_bytes = {
      static_cast<std::uint64_t>(std::llround(wire * machine.rate(Param::NvlinkBandwidth)))};
  return cost;
}

namespace {

NcclCost exchange_cost(const Machine& machine, const NcclTuning& tuning, NcclExchange exchange,
                       Bytes size, std::uint32_t peers, NcclPeer peer) {
  auto [kernel, time] = nccl_exchange(machine, tuning, exchange, size, peers, peer);
  const bool whole = exchange != NcclExchange::SendRecv && exchange != NcclExchange::OneWay;
  if (whole) kernel.channels = nccl_exchange_channels(tuning, size);
  return nccl_cost_of(machine, kernel, time);
}

}  // namespace

NcclCost collective_cost(const Machine& machine, const NcclTuning& tuning, CollectiveKind kind,
                         Bytes size, DataType type, RedOp op) {
  const std::uint32_t ranks = tuning.ranks();
  if (is_send_recv(kind)) {
    const bool several = tuning.topology.nodes > 1;
    return exchange_cost(machine, tuning, nccl_exchange_of(kind), size, ranks - 1,
                         several ? NcclPeer::OtherNode : NcclPeer::SameNode);
  }
  const Bytes bytes = nccl_vector(kind, size, ranks);
  const NcclPlan plan = nccl_plan(tuning, {nccl_function(kind), bytes, type, op, 1});
  const NcclChoice choice{plan.algorithm, plan.protocol, plan.channels, plan.threads};
  const auto count = static_cast<double>(bytes.count);
  const bool near = tuning.stays_on_nvlink() && choice.algorithm == NcclAlgorithm::Ring;
  const auto measured = near ? nccl_ring_time(machine, kind, choice, count, ranks)
                             : nccl_far_time(machine, tuning, kind, choice, count);
  if (measured) return nccl_cost_of(machine, choice, *measured);
  const NcclTime price{plan.price_us * 1e-6, count * 2 * (ranks - 1) / ranks};
  return nccl_cost_of(machine, choice, price);
}

NcclCost send_recv_cost(const Machine& machine, const NcclTuning& tuning, Bytes size,
                        bool both_ways, NcclPeer peer) {
  return exchange_cost(machine, tuning, both_ways ? NcclExchange::SendRecv : NcclExchange::OneWay,
                       size, 1, peer);
}

NcclTuning nccl_tuning_for(const Machine& machine, std::uint32_t ranks, std::uint32_t nodes,
                           const std::map<std::string, std::string>& environment) {
  std::vector<std::string> settings;
  const bool no_multicast = machine.has(Param::NcclNvls) && machine.get(Param::NcclNvls).value == 0;
  if (no_multicast) settings.emplace_back("NCCL_NVLS_ENABLE=0");  // the scenario's own comes later
  for (const auto& [name, value] : environment) {
    if (name.starts_with("NCCL_")) settings.push_back(fmt::format("{}={}", name, value));
  }
  return nccl_tuning_of(machine, ranks, nodes, NcclSettings{settings});
}

}  // namespace foretrace
