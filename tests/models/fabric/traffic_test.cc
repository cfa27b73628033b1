// What operations over several nodes load NICs, leaves and spines with, in numbers that can be
// counted by hand.
#include "models/fabric/traffic.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

using Loads = std::map<std::string, double>;

Loads named(const FabricLinks& fabric, const FabricTraffic& traffic) {
  Loads loads;
  for (const Load& load : traffic.loads) loads[fabric.links()[load.link].name] = load.nics;
  return loads;
}

/// Nodes of `gpus` GPUs and as many NICs, all of which take part.
std::vector<NodePart> whole_nodes(std::uint32_t nodes, std::uint32_t gpus) {
  std::vector<NodePart> parts;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    parts.push_back({node, {}});
    for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) parts.back().gpus.push_back(gpu);
  }
  return parts;
}

Fabric fabric_of(FabricKind kind, std::uint32_t ports, double over = 1) {
  Fabric fabric;
  fabric.kind = kind;
  fabric.leaf_ports = ports;
  fabric.oversubscription = over;
  return fabric;
}

MachineFault lost(std::uint32_t node, std::uint32_t nic) {
  MachineFault fault;
  fault.node = node;
  fault.index = nic;
  fault.share = 0;
  return fault;
}

TEST(FabricTraffic, OfARingCrossesAPodsBorderOnceEachWay) {
  const FabricLinks fabric{{8, 2, 2, 50e9}, fabric_of(FabricKind::RailOptimized, 4, 4), {}};
  const CommunicatorTraffic ranks{fabric, whole_nodes(8, 2), true};
  const Loads ring = named(fabric, ranks.of(Traffic::Ring, {}, 2));
  EXPECT_DOUBLE_EQ(ring.at("node0.nic0.out"), 1);
  EXPECT_DOUBLE_EQ(ring.at("node7.nic1.in"), 1);
  EXPECT_DOUBLE_EQ(ring.at("leaf0.up"), 1);    // of NIC 0 of the first pod's last node
  EXPECT_DOUBLE_EQ(ring.at("leaf3.down"), 1);  // rail 1 of the second pod
  EXPECT_EQ(ring.size(), 8 * 2 * 2 + 4 * 2u);
  EXPECT_DOUBLE_EQ(fabric.links()[32].rate, 50e9) << "four ports, four times as much below";
  EXPECT_NEAR(ranks.of(Traffic::Ring, {}, 2).latency, 2 * 2 * 2 * 0.6e-6, 1e-12)
      << "two borders, two more switches at each, twice around";
}

TEST(FabricTraffic, OfAnExchangeLeavesThePodAsOftenAsItsPeersDo) {
  const FabricLinks fabric{{8, 2, 2, 50e9}, fabric_of(FabricKind::RailOptimized, 4), {}};
  const Loads proxied = named(
      fabric, CommunicatorTraffic{fabric, whole_nodes(8, 2), true}.of(Traffic::Exchange, {}, 1));
  EXPECT_DOUBLE_EQ(proxied.at("node2.nic1.out"), 1);
  EXPECT_NEAR(proxied.at("leaf1.up"), 4 * 4 / 7.0, 1e-9);  // four NICs, four of seven nodes
  // Without PXN half of what stays in the pod goes to the other rail, through the spine.
  const Loads direct = named(
      fabric, CommunicatorTraffic{fabric, whole_nodes(8, 2), false}.of(Traffic::Exchange, {}, 1));
  EXPECT_NEAR(direct.at("leaf1.up"), 4 * (4 + 3 / 2.0) / 7, 1e-9);
}

TEST(FabricTraffic, OfAFatTreeLeavesTheLeafOfTheNode) {
  const FabricLinks fabric{{4, 2, 2, 50e9}, fabric_of(FabricKind::FatTree, 4, 2), {}};
  const CommunicatorTraffic ranks{fabric, whole_nodes(4, 2), true};
  EXPECT_DOUBLE_EQ(named(fabric, ranks.of(Traffic::Ring, {}, 1)).at("leaf0.up"), 2);  // both rails
  EXPECT_NEAR(named(fabric, ranks.of(Traffic::Exchange, {}, 1)).at("leaf0.up"), 4 * 2 / 3.0, 1e-9);
}

TEST(FabricTraffic, OfADragonflyGoesOverTheLinkOfTwoGroups) {
  Fabric dragonfly = fabric_of(FabricKind::Dragonfly, 2);
  dragonfly.group_leaves = 2;
  const FabricLinks fabric{{8, 1, 1, 10e9}, dragonfly, {}};  // four nodes a group
  const CommunicatorTraffic ranks{fabric, whole_nodes(8, 1), true};
  const Loads ring = named(fabric, ranks.of(Traffic::Ring, {}, 1));
  EXPECT_DOUBLE_EQ(ring.at("group0.to1"), 1);
  dragonfly.group_leaves = 1;
  EXPECT_THROW(FabricLinks({3000, 1, 1, 10e9}, dragonfly, {}), UsageError) << "a group for two";
  EXPECT_NEAR(named(fabric, ranks.of(Traffic::Exchange, {}, 1)).at("group0.to1"), 4 * 4 / 7.0,
              1e-9);
}

TEST(FabricTraffic, OfTreesAndDoublingKeepsTheBusiestNicAtOne) {
  for (const std::uint32_t nodes : {2u, 3u, 4u, 7u, 16u}) {
    const FabricLinks fabric{{nodes, 2, 2, 50e9}, fabric_of(FabricKind::None, 64), {}};
    const CommunicatorTraffic ranks{fabric, whole_nodes(nodes, 2), true};
    for (const Traffic traffic : {Traffic::Tree, Traffic::Doubling, Traffic::Gather}) {
      double most = 0;
      for (const auto& [name, load] : named(fabric, ranks.of(traffic, {0, 1}, 1))) {
        most = std::max(most, load);
      }
      EXPECT_NEAR(most, 1, 1e-9) << nodes;
    }
  }
}

TEST(FabricTraffic, WithALostNicDoesWithoutItsRailOrGoesThroughTheNext) {
  const FabricLinks fabric{{4, 4, 4, 50e9}, fabric_of(FabricKind::None, 64), {lost(2, 3)}};
  const CommunicatorTraffic ranks{fabric, whole_nodes(4, 4), true};
  const Loads ring = named(fabric, ranks.of(Traffic::Ring, {}, 1));
  EXPECT_NEAR(ring.at("node0.nic0.out"), 4 / 3.0, 1e-9);
  EXPECT_FALSE(ring.contains("node0.nic3.out")) << "all nodes do without the rail";
  const Loads exchange = named(fabric, ranks.of(Traffic::Exchange, {}, 1));
  EXPECT_DOUBLE_EQ(exchange.at("node2.nic2.in"), 2);
  EXPECT_DOUBLE_EQ(exchange.at("node0.nic3.out"), 1);
  EXPECT_THROW(FabricLinks({1, 1, 1, 50e9}, fabric.fabric(), {lost(0, 0)}), UsageError);
}

TEST(FabricTraffic, OfAPairTakesTheReceiversRailWherePxnDoes) {
  const FabricLinks fabric{{2, 4, 4, 50e9}, fabric_of(FabricKind::RailOptimized, 1), {}};
  const CommunicatorTraffic proxied{fabric, whole_nodes(2, 4), true};
  const CommunicatorTraffic direct{fabric, whole_nodes(2, 4), false};
  EXPECT_TRUE(named(fabric, proxied.between(Nic{0, 0}, Nic{1, 3})).contains("node0.nic3.out"));
  EXPECT_TRUE(named(fabric, direct.between(Nic{0, 0}, Nic{1, 3})).contains("node0.nic0.out"));
}

}  // namespace
}  // namespace foretrace
