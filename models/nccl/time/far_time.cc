#include "models/nccl/time/far_time.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace foretrace::nccl {
namespace {

using enum Protocol;

constexpr double kLlFill = 8.0 * 1024;  // LL's lines go on while the rest still comes: tables of
                                        // GH200 nodes show no more than this to fill
constexpr double kLl128Step = 614400.0 / 16 * 15;

class Far {
 public:
  Far(const Machine& machine, const Tuning& tuning, CollectiveKind kind, const Choice& choice,
      double bytes)
      : machine_{machine},
        topology_{tuning.topology},
        kind_{kind},
        choice_{choice},
        bytes_{bytes},
        nodes_{static_cast<double>(topology_.nodes)},
        ranks_{static_cast<double>(topology_.ranks())},
        per_node_{static_cast<double>(topology_.gpus_per_node)},
        channels_{static_cast<double>(choice.channels)},
        ring_{ring_params(kind, choice.protocol)} {}

  std::optional<Time> time() const {
    switch (choice_.algorithm) {
      case Algorithm::Ring:
        if (!machine_.has(ring_.base) || !has_network(Param::NcclNetRingLlStep)) return {};
        return ring();
      case Algorithm::Tree:
        if (!machine_.has(Param::NcclTreeLlBase) || !has_network(Param::NcclNetTreeLlStep)) {
          return {};
        }
        return tree();
      case Algorithm::Nvls:
      case Algorithm::NvlsTree:
        if (!machine_.has(Param::NcclNvlsBase) || !has_network(Param::NcclNetTreeLlStep)) return {};
        return nvls();
      case Algorithm::Pat:
        if (!has_network(Param::NcclNetRingLlStep)) return {};
        return pat();
      case Algorithm::CollNetDirect:
      case Algorithm::CollNetChain:
        break;
    }
    return {};
  }

 private:
  bool has_network(Param param) const { return nodes_ == 1 || machine_.has(param); }
  double value(Param param) const { return machine_.get(param).value; }
  /// The parameter of this protocol in a row of LL, LL128, Simple.
  double by_protocol(Param ll) const {
    return value(static_cast<Param>(static_cast<int>(ll) + static_cast<int>(choice_.protocol)));
  }
  double port_seconds(double bytes) const {
    double share = choice_.protocol == LL ? 0.5 : 1;  // the other half are flags
    if (share < 1 && machine_.has(Param::NcclHostLlShare)) share = value(Param::NcclHostLlShare);
    return bytes / (machine_.rate(Param::NcclPortBandwidth) * share);
  }

  /// One message of `payload` bytes on one channel over the network, beyond its bytes' time.
  double hop(Param step, double payload) const {
    const double message = choice_.protocol == LL ? 2 * payload : payload;
    const bool asks = message > value(Param::NetworkEager);
    return by_protocol(step) + (asks ? value(Param::NetworkRendezvous) : 0);
  }

  /// `bytes` of payload through the NICs of a node; `share` of what large messages get.
  double network_seconds(double bytes, double share) const {
    if (nodes_ == 1) return 0;
    const double nics = topology_.nics * double{topology_.nic_gbps} * 1e9;
    const double most = nics * value(Param::NcclNetEfficiency) * share;
    if (choice_.protocol == Simple) return bytes / most;
    const bool in_ring = choice_.algorithm == Algorithm::Ring;
    const double flags = choice_.protocol == LL ? 2 : 1;
    return bytes / std::min(most / flags, by_protocol(in_ring ? Param::NcclNetRingLlRate
                                                              : Param::NcclNetTreeLlRate));
  }

  Time total(double latency, double wire_bytes, double network) const {
    const double ports = port_seconds(wire_bytes);
    return {latency + (nodes_ == 1 ? ports : both(ports, network)), wire_bytes, latency};
  }

  /// Every rank passes every part on; of all hops those over a node's border go over the network.
  Time ring() const {
    const bool chain = kind_ == CollectiveKind::Broadcast || kind_ == CollectiveKind::Reduce;
    const double per_channel = bytes_ / channels_;
    const double part = std::min(chain ? per_channel : per_channel / ranks_, largest_part());
    const double rounds = kind_ == CollectiveKind::AllReduce ? 2 : 1;
    const double steps = rounds * (ranks_ - 1);
    const double between = nodes_ == 1 ? 0 : steps * nodes_ / ranks_;
    double shown = 1;  // of a step's latency: the rest hides behind the parts before it
    double seen = 1;   // of a hop between nodes
    if (choice_.protocol == Simple && chain) {
      shown = std::min(1.0, part / kSimpleStep);
    } else if (choice_.protocol == Simple) {
      shown = 1 / std::hypot(1.0, part / value(Param::NcclHiddenStep));
      if (nodes_ > 1) seen = 1 / (1 + std::pow(part / value(Param::NcclNetHidden), 2));
    }
    double latency = value(ring_.base) + (steps - between + 1) * value(ring_.step) * shown;
    if (nodes_ > 1) latency += between * hop(Param::NcclNetRingLlStep, part) * seen;
    const double wire = bus_bytes(kind_, bytes_, ranks_);
    return total(latency, wire, network_seconds(wire, 1));
  }

  double largest_part() const {
    if (choice_.protocol == LL) return kLlStep;
    return choice_.protocol == LL128 ? kLl128Step : 4 * kSimpleStep;
  }

  /// Up and down again: a chain inside each node, a binary tree over the nodes. A chunk is passed
  /// on when all of it has come, so the first one pays for every hop.
  Time tree() const {
    const double chunk = choice_.protocol == LL      ? kLlFill
                         : choice_.protocol == LL128 ? kLl128Step
                                                     : kSimpleStep;
    const double message = std::min(bytes_ / channels_, chunk);
    double latency = by_protocol(Param::NcclTreeLlBase) +
                     2 * (per_node_ - 1) * by_protocol(Param::NcclTreeLlStep);
    double network = 0;
    if (nodes_ > 1) {
      const double hops = 2 * levels();
      latency +=
          hops * (hop(Param::NcclNetTreeLlStep, message) + network_seconds(message * channels_, 1));
      const double share = nodes_ > 2 ? value(Param::NcclTreeEfficiency) : 1;
      network = network_seconds(2 * bytes_ * (nodes_ - 1) / nodes_, share);
    }
    return total(latency, 2 * bytes_ * (per_node_ - 1) / per_node_, network);
  }

  double levels() const { return std::bit_width(topology_.nodes) - 1; }

  /// The switches add up and spread; NVLSTree has a tree over the nodes for each GPU's part.
  Time nvls() const {
    const bool all_reduce = kind_ == CollectiveKind::AllReduce;
    const double switches = all_reduce ? bytes_ / machine_.rate(Param::NcclNvlsRate)
                                       : port_seconds(bytes_ * (per_node_ - 1) / per_node_);
    double latency = value(Param::NcclNvlsBase);
    double network = 0;
    if (nodes_ > 1) {
      latency += 2 * levels() * by_protocol(Param::NcclNetTreeLlStep);
      latency += levels() * value(Param::NcclNvlsTreeFill) * bytes_ /
                 (bytes_ + value(Param::NcclNvlsTreeFillSize));
      const double share = nodes_ > 2 ? value(Param::NcclTreeEfficiency) : 1;
      network = network_seconds(2 * bytes_ * (nodes_ - 1) / nodes_, share);
    } else {
      latency += value(Param::NcclNvlsFill) * bytes_ / (bytes_ + value(Param::NcclNvlsFillSize));
    }
    return {latency + both(switches, network), bytes_};
  }

  /// One GPU in each node, messages that double: as many hops as the number of ranks has bits.
  Time pat() const {
    const double wire = bytes_ * (ranks_ - 1) / ranks_;
    const double hops = std::bit_width(topology_.ranks() - 1);
    const double latency = value(ring_.base) + hops * hop(Param::NcclNetRingLlStep, wire / ranks_);
    return total(latency, wire, network_seconds(wire, 1));
  }

  const Machine& machine_;
  const Topology& topology_;
  CollectiveKind kind_;
  const Choice& choice_;
  double bytes_, nodes_, ranks_, per_node_, channels_;
  RingParams ring_;
};

}  // namespace

std::optional<Time> far_time(const Machine& machine, const Tuning& tuning, CollectiveKind kind,
                             const Choice& choice, double bytes) {
  if (tuning.leaves_nvlink()) return {};  // the machine's times are those of its NVLink
  return Far{machine, tuning, kind, choice, bytes}.time();
}

std::optional<Time> far_exchange_time(const Machine& machine, const Tuning& tuning,
                                      Exchange exchange, double bytes) {
  if (!machine.has(Param::NcclNetExchangeBase)) return {};
  const Topology& topology = tuning.topology;
  const double nic =
      double{topology.nic_gbps} * 1e9 * machine.get(Param::NcclNetExchangeEfficiency).value;
  const double per_node = topology.gpus_per_node;
  const double far = topology.ranks() - per_node;
  const double of_gpu = std::max(1.0, topology.nics / per_node) * nic;
  Time time;
  double network = 0;
  switch (exchange) {
    case Exchange::AllToAll:
      network = per_node * far * bytes / (topology.nics * nic);
      time.wire_bytes = (per_node - 1) * bytes;
      break;
    case Exchange::Gather:
    case Exchange::Scatter:  // all through the root's NIC
      network = far * bytes / of_gpu;
      time.wire_bytes = (per_node - 1) * bytes;
      break;
    case Exchange::SendRecv:
    case Exchange::OneWay:
      network = bytes / of_gpu;
      break;
  }
  time.fixed = machine.get(Param::NcclNetExchangeBase).value;
  time.ports = time.wire_bytes / machine.rate(Param::NcclPortBandwidth);
  time.channel = both(time.ports, network);
  time.seconds = time.fixed + time.channel;
  return time;
}

}  // namespace foretrace::nccl
