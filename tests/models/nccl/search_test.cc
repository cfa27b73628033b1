// NCCL's graphs on regular machines, against its logs and worked examples.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/nccl/topology/topology.h"

namespace foretrace::nccl {
namespace {

std::string search(const Topology& topology, const std::vector<std::string>& environment = {},
                   Version version = {}) {
  const Graphs graphs = search_graphs(topology, constants_of(version), Settings{environment});
  const auto text = [](const SearchGraph& g) {
    return g.channels == 0 ? "none"
                           : fmt::format("{} x {:g}/{:g} {}", g.channels, g.intra_gbps,
                                         g.inter_gbps, g.same_channels ? "same" : "different");
  };
  return fmt::format("ring {}, tree {}, nvls {}", text(graphs.ring), text(graphs.tree),
                     text(graphs.nvls));
}

Topology h200(std::uint32_t gpus) {
  Topology topology;
  topology.gpus_per_node = gpus;
  return topology;
}

TEST(NcclSearch, FindsSixFastRingsOnAnNvSwitchAndSplitsThem) {
  // 370.8 GB/s carry 6 rings of 60; doubled to 12 x 30. Trees need as many channels as rings. NVLS:
  // every GPU carries 9 shares of 40 for 8 heads.
  EXPECT_EQ(search(h200(8)),
            "ring 12 x 30/30 same, tree 12 x 30/30 same, nvls 8 x 40/60 different");
}

TEST(NcclSearch, LaysChainsBothWaysBetweenTwoGpus) {
  // A chain of two GPUs uses one direction only, so 6 go each way at 60.
  EXPECT_EQ(search(h200(2)),
            "ring 12 x 30/30 same, tree 12 x 60/60 different, nvls 2 x 60/60 different");
}

TEST(NcclSearch, LeavesNvlsOutWhereItIsSwitchedOff) {
  EXPECT_EQ(search(h200(4), {"NCCL_NVLS_ENABLE=0"}),
            "ring 12 x 30/30 same, tree 12 x 30/30 same, nvls none");
}

TEST(NcclSearch, OfAmpereEndsAtTwelveChannelsOfTwenty) {
  Topology a100 = h200(8);
  a100.generation = GpuGeneration::Ampere;
  a100.capability = 80;
  a100.nvlinks = 12;
  EXPECT_EQ(search(a100), "ring 12 x 20/20 same, tree 12 x 20/20 same, nvls none");
}

TEST(NcclSearch, OfAMeshTakesDifferentOrdersForItsRings) {
  // Four GPUs, 4 links of 20 between each pair: 6 rings of 40 use every link in both directions.
  Topology mesh = h200(4);
  mesh.generation = GpuGeneration::Ampere;
  mesh.capability = 80;
  mesh.nvlinks = 12;
  mesh.link = Link::NvLinkMesh;
  EXPECT_EQ(search(mesh), "ring 12 x 20/20 different, tree 12 x 20/20 different, nvls none");
}

TEST(NcclSearch, OfPcieThroughAnIntelHostPaysForTheHost) {
  // 24 GB/s, of which a transfer of 20 takes 24.
  Topology pcie = h200(4);
  pcie.generation = GpuGeneration::Ampere;
  pcie.capability = 89;
  pcie.link = Link::PciHost;
  pcie.pci_gbps = 24;
  pcie.sockets = 1;
  EXPECT_EQ(search(pcie), "ring 1 x 20/20 same, tree 1 x 20/20 same, nvls none");
  pcie.cpu = Cpu::Amd;
  EXPECT_EQ(search(pcie), "ring 2 x 12/12 same, tree 2 x 12/12 same, nvls none");
}

TEST(NcclSearch, GivesEveryRailOneChannel) {
  Topology rails = h200(8);
  rails.nodes = 2;
  EXPECT_EQ(search(rails),
            "ring 8 x 48/48 different, tree 8 x 48/48 different, nvls 8 x 40/48 different");
}

TEST(NcclSearch, OfBlackwellKnowsMoreSpeedsFromTwoTwentyNine) {
  Topology b200 = h200(8);
  b200.generation = GpuGeneration::Blackwell;
  b200.capability = 100;
  EXPECT_EQ(search(b200), "ring 16 x 45/45 same, tree 16 x 40/40 same, nvls 8 x 80/90 different");
  EXPECT_EQ(search(b200, {}, {2, 30, 0}),
            "ring 16 x 45/45 same, tree 16 x 45/45 same, nvls 8 x 80/90 different");
}

TEST(NcclSearch, RemembersWhatItFoundWhateverTheNumberOfNodesIs) {
  Topology topology = h200(8);
  topology.link = Link::NvLinkMesh;  // takes NCCL's search long: seven links to seven peers
  topology.nvlinks = 7;
  topology.mesh_gpus = 8;
  topology.nodes = 2;
  const std::string of_two = search(topology);
  topology.nodes = 512;
  EXPECT_EQ(search(topology), of_two);
  const std::size_t before = searches_of_graphs();
  for (std::uint32_t nodes = 3; nodes < 40; ++nodes) {
    topology.nodes = nodes;
    EXPECT_EQ(search(topology), of_two);
  }
  EXPECT_EQ(searches_of_graphs(), before);
  topology.nodes = 1;
  search(topology, {"NCCL_NVLS_ENABLE=0", "NCCL_P2P_LEVEL=PXB"});
  EXPECT_EQ(searches_of_graphs(), before + 1) << "one node has no NICs, and the settings count";
}

}  // namespace
}  // namespace foretrace::nccl
