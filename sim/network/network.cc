#include "sim/network/network.h"

#include <algorithm>
#include <set>

#include "scenarios/base/text/errors.h"

namespace foretrace::sim {
namespace {

/// The ranks' GPUs by node, nodes in the order of their first ranks.
std::vector<NodePart> parts_of(const std::vector<Nic>& gpus) {
  std::vector<NodePart> parts;
  std::map<std::uint32_t, std::size_t> number;
  for (const Nic& gpu : gpus) {
    const auto [at, is_new] = number.try_emplace(gpu.node, parts.size());
    if (is_new) parts.push_back({gpu.node, {}});
    parts[at->second].gpus.push_back(gpu.index);
  }
  return parts;
}

}  // namespace

NetworkLinks::NetworkLinks(Engine& engine, FabricLinks fabric, ChunkNetwork* chunks)
    : engine_{engine}, fabric_{std::move(fabric)}, chunks_{chunks} {
  for (const FabricLink& link : fabric_.links()) {
    links_.push_back(engine.add_link(link.name, Bandwidth::gigabytes_per_second(link.rate * 1e-9)));
  }
}

/// Links with the same load, to a hundredth, are one flow's.
NetworkRoute NetworkLinks::route(const FabricTraffic& traffic) {
  constexpr double kAlike = 1.01;
  std::vector<Load> loads = traffic.loads;
  std::ranges::sort(loads, [](const Load& a, const Load& b) {
    return std::pair{-a.nics, a.link} < std::pair{-b.nics, b.link};
  });
  NetworkRoute route{{}, fabric_.nodes().nic_rate, seconds_to_duration(traffic.latency)};
  for (std::size_t first = 0; first < loads.size();) {
    std::vector<LinkId> alike;
    const double most = loads[first].nics;
    while (first < loads.size() && loads[first].nics * kAlike >= most) {
      alike.push_back(links_[loads[first++].link]);
    }
    if (most > 0) route.flows.push_back({engine_.path(alike), most});
  }
  return route;
}

std::uint32_t NetworkLinks::way(const FabricTraffic& traffic) {
  FORETRACE_CHECK(chunks_ != nullptr, "slices are of chunk fidelity");
  ChunkWay way{seconds_to_duration(traffic.latency).count(), {}};
  const auto& links = fabric_.links();
  for (const Load& load : traffic.loads) {
    way.links.push_back({load.link, load.nics * fabric_.nodes().nic_rate / links[load.link].rate});
  }
  return chunks_->add_way(std::move(way));
}

CommNetwork::CommNetwork(NetworkLinks& links, const std::vector<Nic>& gpus, bool proxied)
    : links_{links}, gpus_{gpus}, traffic_{links.fabric(), parts_of(gpus), proxied} {
  for (const Nic& gpu : gpus) {
    const auto& parts = traffic_.parts();
    const auto at = std::ranges::find(parts, gpu.node, &NodePart::node);
    part_.push_back(static_cast<std::uint32_t>(at - parts.begin()));
  }
}

const NetworkRoute& CommNetwork::of(Traffic traffic, std::uint32_t root, double rounds) {
  const bool rooted = traffic == Traffic::Gather || traffic == Traffic::Scatter;
  const auto [at, is_new] = routes_.try_emplace({traffic, rooted ? root : 0, rounds});
  if (is_new) at->second = links_.route(traffic_.of(traffic, gpus_[rooted ? root : 0], rounds));
  return at->second;
}

const NetworkRoute& CommNetwork::between(std::uint32_t from, std::uint32_t to) {
  const auto [at, is_new] = pairs_.try_emplace({from, to});
  if (is_new && gpus_[from].node != gpus_[to].node) {
    at->second = links_.route(traffic_.between(gpus_[from], gpus_[to]));
  }
  return at->second;
}

std::uint32_t CommNetwork::way(std::uint32_t from, std::uint32_t to, bool own_nics) {
  if (gpus_[from].node == gpus_[to].node) return kNowhere;
  const std::uint32_t source = own_nics ? from : part_[from];
  const std::uint32_t target = own_nics ? to : part_[to];
  const auto [at, is_new] = ways_.try_emplace({source, target, own_nics});
  if (is_new) {
    at->second = links_.way(own_nics ? traffic_.between(gpus_[from], gpus_[to])
                                     : traffic_.between(source, target));
  }
  return at->second;
}

Traffic traffic_of(CollectiveKind kind, nccl::Algorithm algorithm) {
  switch (kind) {
    case CollectiveKind::AllToAll:
      return Traffic::Exchange;
    case CollectiveKind::Gather:
      return Traffic::Gather;
    case CollectiveKind::Scatter:
      return Traffic::Scatter;
    default:
      break;
  }
  switch (algorithm) {
    case nccl::Algorithm::Tree:
    case nccl::Algorithm::NvlsTree:
      return Traffic::Tree;
    case nccl::Algorithm::Pat:
      return Traffic::Doubling;
    default:
      return Traffic::Ring;
  }
}

}  // namespace foretrace::sim
