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

namespace foretrace::nccl {

Bytes vector_bytes(CollectiveKind kind, Bytes size, std::uint32_t ranks) {
  const bool parts = kind == CollectiveKind::AllGather || kind == CollectiveKind::ReduceScatter;
  return {parts ? size.count * ranks : size.count};
}

Cost cost_of(const Machine& machine, const Choice& choice, const Time& time) {
  const double port = machine.rate(Param::NcclPortBandwidth);
  const double wire = std::min(time.seconds, time.wire_bytes / port);
  Cost cost;
  cost.choice = choice;
  cost.latency = seconds_to_duration(time.seconds - wire);
  cost.wire_bytes = {
      static_cast<std::uint64_t>(std::llround(wire * machine.rate(Param::NvlinkBandwidth)))};
  return cost;
}

namespace {

Cost exchange_cost(const Machine& machine, const Tuning& tuning, Exchange exchange, Bytes size,
                   std::uint32_t peers, Peer peer) {
  auto [kernel, time] = exchange_with_peers(machine, tuning, exchange, size, peers, peer);
  const bool whole = exchange != Exchange::SendRecv && exchange != Exchange::OneWay;
  if (whole) kernel.channels = exchange_channels(tuning, size);
  return cost_of(machine, kernel, time);
}

}  // namespace

Cost collective_cost(const Machine& machine, const Tuning& tuning, CollectiveKind kind, Bytes size,
                     DataType type, RedOp op) {
  const std::uint32_t ranks = tuning.ranks();
  if (is_send_recv(kind)) {
    const bool several = tuning.topology.nodes > 1;
    return exchange_cost(machine, tuning, exchange_of(kind), size, ranks - 1,
                         several ? Peer::OtherNode : Peer::SameNode);
  }
  const Bytes bytes = vector_bytes(kind, size, ranks);
  const Plan plan = plan_of(tuning, {function_of(kind), bytes, type, op, 1});
  const Choice choice{plan.algorithm, plan.protocol, plan.channels, plan.threads};
  const auto count = static_cast<double>(bytes.count);
  const bool near = tuning.stays_on_nvlink() && choice.algorithm == Algorithm::Ring;
  const auto measured = near ? ring_time(machine, kind, choice, count, ranks)
                             : far_time(machine, tuning, kind, choice, count);
  if (measured) return cost_of(machine, choice, *measured);
  const Time price{plan.price_us * 1e-6, count * 2 * (ranks - 1) / ranks};
  return cost_of(machine, choice, price);
}

Cost send_recv_cost(const Machine& machine, const Tuning& tuning, Bytes size, bool both_ways,
                    Peer peer) {
  return exchange_cost(machine, tuning, both_ways ? Exchange::SendRecv : Exchange::OneWay, size, 1,
                       peer);
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
