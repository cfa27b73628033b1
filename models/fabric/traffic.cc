#include "models/fabric/traffic.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace foretrace {

/// Loads that are being added up.
class CommunicatorTraffic::Sum {
 public:
  explicit Sum(const FabricLinks& fabric) : fabric_{fabric} {}

  void add(Nic from, Nic to, double nics) {
    const FabricWay way = fabric_.way(from, to);
    for (const std::uint32_t link : way.links) loads_[link] += nics;
    switches_ = std::max(switches_, way.switches);
  }
  /// Of many at once: what they share beyond their NICs.
  void add_inner(Nic from, Nic to, double nics) {
    const FabricWay way = fabric_.way(from, to);
    for (std::size_t i = 1; i + 1 < way.links.size(); ++i) loads_[way.links[i]] += nics;
    switches_ = std::max(switches_, way.switches);
  }
  void add_link(std::uint32_t link, double nics) { loads_[link] += nics; }
  /// Seconds that the longest way takes longer than one through a single switch.
  double latency() const { return (switches_ - 1) * fabric_.fabric().leaf_latency; }
  double busiest_nic() const {
    const std::size_t nics = 2 * std::size_t{fabric_.nodes().nodes} * fabric_.nodes().nics;
    double most = 0;
    for (const auto& [link, load] : loads_) {
      if (link < nics) most = std::max(most, load);
    }
    return most;
  }
  std::vector<Load> loads(double scale) const {
    std::vector<Load> all;
    for (const auto& [link, load] : loads_) all.push_back({link, load * scale});
    return all;
  }

 private:
  const FabricLinks& fabric_;
  std::map<std::uint32_t, double> loads_;
  std::uint32_t switches_ = 1;
};

std::uint32_t parent_node(std::uint32_t node, std::uint32_t nodes, bool second) {
  if (second) {
    if (nodes % 2 == 0) return nodes - 1 - parent_node(nodes - 1 - node, nodes, false);
    return (parent_node((node + nodes - 1) % nodes, nodes, false) + 1) % nodes;
  }
  if (node == 0) return 0;
  const std::uint32_t bit = node & (~node + 1);
  const std::uint32_t up = (node ^ bit) | bit << 1;
  return up < nodes ? up : node ^ bit;
}

CommunicatorTraffic::CommunicatorTraffic(const FabricLinks& fabric, std::vector<NodePart> parts,
                                         bool proxied)
    : fabric_{fabric}, parts_{std::move(parts)}, proxied_{proxied} {
  for (const NodePart& part : parts_) rails_.push_back(rails(part));
  // Every node takes as many channels as the poorest one: a rail that one has lost is no rail.
  const std::size_t count = rails_.front().size();
  const auto alike = [&](const auto& rails) { return rails.size() == count; };
  std::vector<std::size_t> alive;
  for (std::size_t i = 0; i < count && std::ranges::all_of(rails_, alike); ++i) {
    const auto lives = [&](const auto& rails) { return !fabric.is_lost(rails[i]); };
    if (std::ranges::all_of(rails_, lives)) alive.push_back(i);
  }
  for (auto& rails : rails_) {
    std::vector<Nic> used;
    for (const std::size_t i : alive) used.push_back(rails[i]);
    if (alive.empty()) {  // each node by itself
      for (const Nic nic : rails) used.push_back(fabric.living(nic));
    }
    rails = std::move(used);
  }
}

/// The NICs next to the GPUs that take part.
std::vector<Nic> CommunicatorTraffic::rails(const NodePart& part) const {
  const FabricNodes& nodes = fabric_.nodes();
  const std::uint32_t each = std::max(1U, nodes.nics / nodes.gpus);
  std::set<std::uint32_t> indices;
  for (const std::uint32_t gpu : part.gpus) {
    for (std::uint32_t i = 0; i < each; ++i) {
      indices.insert(gpu * nodes.nics / nodes.gpus + i);
    }
  }
  std::vector<Nic> nics;
  for (const std::uint32_t index : indices) nics.push_back({part.node, index});
  return nics;
}

Nic CommunicatorTraffic::nic_of(Nic gpu) const {
  const FabricNodes& nodes = fabric_.nodes();
  return {gpu.node, gpu.index * nodes.nics / nodes.gpus};
}

/// Nodes with unlike rails use those of the one that has more of them.
void CommunicatorTraffic::add_between(Sum& sum, std::uint32_t from, std::uint32_t to,
                                      double nics) const {
  const auto& source = rails_[from];
  const auto& target = rails_[to];
  const std::size_t count = std::max(source.size(), target.size());
  for (std::size_t i = 0; i < count; ++i) {
    sum.add(source[i % source.size()], target[i % target.size()],
            nics / static_cast<double>(count));
  }
}

void CommunicatorTraffic::add_trees(Sum& sum) const {
  const auto nodes = static_cast<std::uint32_t>(parts_.size());
  for (const bool second : {false, true}) {
    for (std::uint32_t node = 0; node < nodes; ++node) {
      const std::uint32_t parent = parent_node(node, nodes, second);
      if (parent == node) continue;
      add_between(sum, node, parent, 1);
      add_between(sum, parent, node, 1);
    }
  }
}

/// Between any two GPUs of different nodes as much. Nodes of a pod are alike, so pods count.
void CommunicatorTraffic::add_exchange(Sum& sum) const {
  struct Alike {
    Nic example;
    double nics = 0;  ///< GPUs that go through it, over all nodes of the pod
  };
  // By pod and NIC; lost ones have moved to others.
  std::map<std::pair<std::uint32_t, std::uint32_t>, Alike> alike;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, double> same_node;
  const double others = static_cast<double>(parts_.size()) - 1;
  for (const NodePart& part : parts_) {
    std::map<std::uint32_t, double> by_nic;
    for (const std::uint32_t gpu : part.gpus) {
      by_nic[fabric_.living(nic_of({part.node, gpu})).index] += 1;
    }
    const std::uint32_t pod = fabric_.pod_of(part.node);
    for (const auto& [nic, gpus] : by_nic) {
      alike[{pod, nic}].example = {part.node, nic};
      alike[{pod, nic}].nics += gpus;
      sum.add_link(fabric_.out_link({part.node, nic}), gpus * others);
      sum.add_link(fabric_.in_link({part.node, nic}), gpus * others);
      for (const auto& [other, more] : by_nic) same_node[{pod, nic, other}] += gpus * more;
    }
  }
  for (const auto& [from, source] : alike) {
    double all_rails = 0;  // that a NIC's share is dealt out over
    for (const auto& [to, target] : alike) {
      if (!proxied_ || from.second == to.second) all_rails += target.nics;
    }
    for (const auto& [to, target] : alike) {
      if (proxied_ && from.second != to.second) continue;
      double pairs = source.nics * target.nics;
      if (from.first == to.first) pairs -= same_node[{from.first, from.second, to.second}];
      const double per_pair = static_cast<double>(parts_.size()) / all_rails;
      sum.add_inner(source.example, target.example, pairs * per_pair);
    }
  }
}

void CommunicatorTraffic::add(Sum& sum, Traffic traffic, Nic root) const {
  const Nic at_root = fabric_.living(nic_of(root));
  const auto nodes = static_cast<std::uint32_t>(parts_.size());
  switch (traffic) {
    case Traffic::None:
      break;
    case Traffic::Ring:
      for (std::uint32_t node = 0; node < nodes; ++node) {
        add_between(sum, node, (node + 1) % nodes, 1);
      }
      break;
    case Traffic::Tree:
      add_trees(sum);
      break;
    case Traffic::Doubling:
      for (std::uint32_t step = 1; step < nodes; step *= 2) {
        for (std::uint32_t node = 0; node < nodes; ++node) {
          add_between(sum, node, (node + step) % nodes, 1.0 / step);
        }
      }
      break;
    case Traffic::Exchange:
      add_exchange(sum);
      break;
    case Traffic::Gather:
    case Traffic::Scatter:
      for (const NodePart& part : parts_) {
        const Nic other = fabric_.living({part.node, at_root.index});
        if (part.node == root.node) continue;
        traffic == Traffic::Gather ? sum.add(other, at_root, 1) : sum.add(at_root, other, 1);
      }
      break;
  }
}

FabricTraffic CommunicatorTraffic::of(Traffic traffic, Nic root, double rounds) const {
  if (parts_.size() < 2 || traffic == Traffic::None) return {};
  Sum sum{fabric_};
  add(sum, traffic, root);
  const FabricLinks sound{fabric_.nodes(), fabric_.fabric(), {}};
  const CommunicatorTraffic healthy{sound, parts_, proxied_};
  Sum alone{sound};
  healthy.add(alone, traffic, root);
  FabricTraffic result{sum.loads(1 / alone.busiest_nic()), 0};
  const auto nodes = static_cast<std::uint32_t>(parts_.size());
  const double latency = fabric_.fabric().leaf_latency;
  if (traffic == Traffic::Ring) {  // the way goes over all of them
    for (std::uint32_t node = 0; node < nodes; ++node) {
      const FabricWay way = fabric_.way(rails_[node].front(), rails_[(node + 1) % nodes].front());
      result.latency += rounds * (way.switches - 1) * latency;
    }
  } else if (traffic == Traffic::Tree) {
    result.latency = 2 * (std::bit_width(nodes) - 1) * sum.latency();
  } else {
    result.latency = sum.latency();
  }
  return result;
}

FabricTraffic CommunicatorTraffic::between(std::uint32_t from, std::uint32_t to) const {
  Sum sum{fabric_};
  add_between(sum, from, to, 1);
  // All rails of a sound node together are 1 each.
  const auto rails_of_node = static_cast<double>(rails(parts_[from]).size());
  return {sum.loads(rails_of_node), sum.latency()};
}

FabricTraffic CommunicatorTraffic::between(Nic from_gpu, Nic to_gpu) const {
  const Nic to = fabric_.living(nic_of(to_gpu));
  // PXN: through the GPU of the sender's node on the receiver's rail.
  const Nic from = fabric_.living(proxied_ ? Nic{from_gpu.node, to.index} : nic_of(from_gpu));
  Sum sum{fabric_};
  sum.add(from, to, 1);
  return {sum.loads(1), sum.latency()};
}

}  // namespace foretrace
