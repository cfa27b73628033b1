#include "models/nccl/time/cost.h"

#include <algorithm>
#include <cmath>

#include "models/constants/constants.h"
#include "models/nccl/rules/p2p.h"
#include "models/nccl/time/ring_time.h"

namespace foretrace::nccl {

Cost cost_of(const Machine& machine, const Choice& choice, double seconds, double wire_seconds,
             double network_seconds) {
  const double wire = std::min(seconds, wire_seconds);
  Cost cost;
  cost.choice = choice;
  cost.network = seconds_to_duration(std::min(seconds, network_seconds));
  cost.latency = seconds_to_duration(seconds - wire);
  cost.wire_bytes = {
      static_cast<std::uint64_t>(std::llround(wire * machine.rate(Param::NvlinkBandwidth)))};
  return cost;
}

Cost collective_cost(const Machine& machine, const Tuning& tuning, const Call& call) {
  Reading read{machine};
  const CollectiveTime time = collective_time(read, tuning, call);
  Choice choice = time.choice;
  if (is_send_recv(call.kind)) choice.channels = exchange_channels(tuning, call.size);
  const Terms& terms = time.terms;
  if (time.model != Model::Ring || !is_chain(call.kind)) {
    return cost_of(machine, choice, terms.seconds, terms.wire_seconds, terms.network_seconds);
  }
  Cost cost = cost_of(machine, choice, terms.seconds - terms.chain_seconds(), terms.wire_seconds,
                      terms.network_seconds);
  cost.hop = seconds_to_duration(terms.step_seconds);
  cost.last_hop = seconds_to_duration(terms.last_step_seconds);
  return cost;
}

Cost send_recv_cost(const Machine& machine, const Tuning& tuning, Bytes size, bool both_ways,
                    Peer peer, bool direct) {
  Reading read{machine};
  const CollectiveTime time = send_recv_time(read, tuning, size, both_ways, peer, direct);
  const double behind = time.terms.last_step_seconds;
  Cost cost = cost_of(machine, time.choice, time.terms.seconds - behind, time.terms.wire_seconds,
                      time.terms.network_seconds);
  if (behind <= 0) return cost;
  cost.hop = seconds_to_duration(behind);
  cost.last_hop = *cost.hop;
  return cost;
}

Cost own_copy_cost(const Machine& machine, const Tuning& tuning, Bytes size, bool both_ways,
                   bool direct) {
  Cost cost = send_recv_cost(machine, tuning, size, both_ways, Peer::SameNode, direct);
  if (!machine.has(Param::NcclOwnCopy) || !machine.has(Param::NcclOwnCopyBase)) return cost;
  const double memory = machine.rate(Param::HbmBandwidth) / 2;  // read, and written
  const double rate = std::min(machine.rate(Param::NcclOwnCopy), memory);
  cost.latency = machine.time(Param::NcclOwnCopyBase) + at_rate(size, rate);
  cost.wire_bytes = {};
  cost.hop.reset();
  return cost;
}

Duration behind(const Machine& machine, const Cost& cost, Duration ahead, bool both_ways) {
  const char* ll = both_ways ? "nccl.behind.ll_both_ways" : "nccl.behind.ll";
  const double shown = constant(cost.choice.protocol == Protocol::LL ? ll : "nccl.behind.others");
  const Duration own = std::max(Duration{0}, cost.latency - ahead);
  const Duration beside{std::llround(static_cast<double>(own.count()) * shown)};
  return beside + at_rate(cost.wire_bytes, machine.rate(Param::NvlinkBandwidth));
}

}  // namespace foretrace::nccl
