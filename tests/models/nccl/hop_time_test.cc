// Trees, NVLS, the host's memory and several nodes, term by term. us = 1e-6 s; a port moves 100
// GB/s, a node's NICs 8 * 50 GB/s of which NCCL gets half: 200 GB/s.
#include "models/nccl/time/hop_time.h"

#include <gtest/gtest.h>

#include "tests/models/nccl/small_machine.h"

namespace foretrace::nccl {
namespace {

using namespace literals;
using enum CollectiveKind;
using enum Param;

double hop_us(const Machine& machine, const Topology& topology, CollectiveKind kind, Choice choice,
              Bytes bytes) {
  Tuning tuning;
  tuning.topology = topology;
  Reading read{machine};
  const auto terms = hop_time(read, tuning, kind, choice, bytes);
  return terms ? terms->seconds * 1e6 : -1;
}

TEST(HopTime, OfATreeInOneNodeIsTwoHopsForEachFurtherGpuAndThePort) {
  const Machine machine = test::small_machine({{NcclTreeLlBase, 2e-6}, {NcclTreeLlStep, 0.5e-6}});
  // 8 GPUs: up and down 7 hops. 2 * 8000 * 7/8 bytes through the port, LL: as many flags, 0.28.
  // 2 + 14 * 0.5 + 0.28 = 9.28
  const Choice tree{Algorithm::Tree, Protocol::LL, 1, 640};
  EXPECT_NEAR(hop_us(machine, test::nodes_of(1, 8), AllReduce, tree, {8000}), 9.28, 1e-9);
}

class TreeOfNodes : public testing::Test {
 protected:
  Machine machine = test::small_machine({{NcclTreeLlBase, 0},
                                         {NcclTreeSimpleBase, 2e-6},
                                         {NcclTreeSimpleStep, 0.5e-6},
                                         {NcclNetTreeLlStep, 0},
                                         {NcclNetTreeSimpleStep, 10e-6},
                                         {NcclNetEfficiency, 0.5},
                                         {NcclTreeEfficiency, 0.25}});
  Choice tree{Algorithm::Tree, Protocol::Simple, 16, 640};
};

TEST_F(TreeOfNodes, PaysForTheFirstChunkOnEveryHopAndForAllBytesOnce) {
  // 8 MiB on 16 channels: the first chunk is 512 KiB of each, all of it 41.94304 over the NICs.
  // Hops: 2 + 14 * 0.5 + 2 * (10 + 41.94304) = 112.88608.
  // Port: 2 * 8 MiB * 7/8 = 146.80064. NICs: 2 * 8 MiB / 2 = 41.94304.
  EXPECT_NEAR(hop_us(machine, test::nodes_of(2, 8), AllReduce, tree, 8_MiB),
              112.88608 + 146.80064 + 41.94304, 1e-9);
}

TEST_F(TreeOfNodes, LosesBandwidthToItsTwoChildrenFromThreeNodesOn) {
  // Four nodes, two levels: 2 + 7 + 4 * 51.94304 = 216.77216. NICs: 2 * 8 MiB * 3/4 at a quarter
  // of 200 GB/s, 251.65824.
  EXPECT_NEAR(hop_us(machine, test::nodes_of(4, 8), AllReduce, tree, 8_MiB),
              216.77216 + 146.80064 + 251.65824, 1e-9);
}

TEST_F(TreeOfNodes, AsksBeforeItSendsLargeMessages) {
  machine.set(NetworkEager, {1e5, 0, ParameterClass::Assumed, "", ""});
  machine.set(NetworkRendezvous, {3e-6, 0, ParameterClass::Assumed, "", ""});
  // 512 KiB are more than 100 kB: 3 us more on each of two hops.
  EXPECT_NEAR(hop_us(machine, test::nodes_of(2, 8), AllReduce, tree, 8_MiB), 301.62976 + 6, 1e-9);
}

TEST_F(TreeOfNodes, WaitsWhereTheNetworksLibraryCopiesMessages) {
  machine.set(NetworkCopied, {1e5, 0, ParameterClass::Assumed, "", ""});
  machine.set(NetworkCopy, {4e-6, 0, ParameterClass::Assumed, "", ""});
  EXPECT_NEAR(hop_us(machine, test::nodes_of(2, 8), AllReduce, tree, 8_MiB), 301.62976 + 8, 1e-9);
  // 64 KiB of each channel, as they are: hops 9 + 2 * (10 + 5.24288), port 18.35008, NICs 5.24288.
  EXPECT_NEAR(hop_us(machine, test::nodes_of(2, 8), AllReduce, tree, 1_MiB), 63.07872, 1e-9);
}

TEST_F(TreeOfNodes, PassesWholeChunksOnInsideANodeWhereTheMachineSaysHowFast) {
  machine.set(NcclTreeChannelRate, {52.4288e9, 0, ParameterClass::Assumed, "", ""});
  // 512 KiB take 10 us on each of 14 hops.
  EXPECT_NEAR(hop_us(machine, test::nodes_of(2, 8), AllReduce, tree, 8_MiB), 301.62976 + 140, 1e-9);
}

TEST(HopTime, OfNvlsIsTheSwitchesAndWhatFillsThem) {
  const Machine machine = test::small_machine({{NcclNvlsBase, 5e-6},
                                               {NcclNvlsShare, 1},
                                               {NcclNvlsFill, 10e-6},
                                               {NcclNvlsFillSize, 1024 * 1024}});
  const Choice nvls{Algorithm::Nvls, Protocol::Simple, 16, 640};
  // 1 MiB pays half of the fill: 5 + 10 / 2 + 1 MiB at 200 GB/s, 5.24288
  EXPECT_NEAR(hop_us(machine, test::nodes_of(1, 8), AllReduce, nvls, 1_MiB), 15.24288, 1e-9);
  // An all-gather's 7/8 MiB go through the port: 9.17504
  EXPECT_NEAR(hop_us(machine, test::nodes_of(1, 8), AllGather, nvls, 1_MiB), 19.17504, 1e-9);
}

TEST(HopTime, OfNvlsTreeAddsATreeOverTheNodes) {
  const Machine machine = test::small_machine({{NcclNvlsBase, 5e-6},
                                               {NcclNvlsShare, 1},
                                               {NcclNetTreeLlStep, 0},
                                               {NcclNetTreeSimpleStep, 10e-6},
                                               {NcclNvlsTreeFill, 40e-6},
                                               {NcclNvlsTreeFillSize, 3 * 1024 * 1024},
                                               {NcclNetEfficiency, 0.5}});
  const Choice choice{Algorithm::NvlsTree, Protocol::Simple, 16, 640};
  // Two nodes, one level: 5 + 2 * 10 + 40 * 1/(1 + 3) = 35; switches 5.24288; NICs 1 MiB, 5.24288.
  EXPECT_NEAR(hop_us(machine, test::nodes_of(2, 8), AllReduce, choice, 1_MiB), 45.48576, 1e-9);
}

class RingOfNodes : public testing::Test {
 protected:
  Machine machine = test::small_machine({{NcclAllGatherLl128Base, 1e-6},
                                         {NcclAllGatherLl128Step, 4e-6},
                                         {NcclAllGatherSimpleBase, 1e-6},
                                         {NcclAllGatherSimpleStep, 4e-6},
                                         {NcclNetRingLlStep, 0},
                                         {NcclNetRingLl128Step, 10e-6},
                                         {NcclNetRingSimpleStep, 10e-6},
                                         {NcclNetRingLl128Rate, 50e9},
                                         {NcclNetHidden, 256 * 1024},
                                         {NcclNetEfficiency, 0.5}});
  Topology topology = test::nodes_of(2, 2);
};

TEST_F(RingOfNodes, CrossesTheNetworkOnItsShareOfTheSteps) {
  // 4 ranks: 3 steps, of which 3 * 2 / 4 = 1.5 over the network; the last one only receives.
  // 1 + (3 - 1.5 + 1) * 4 + 1.5 * 10 = 26. 3 MB: 30 through the port, 60 at LL128's 50 GB/s, side
  // by side: (30^16 + 60^16)^(1/16) = 60.0000572.
  const Choice ring{Algorithm::Ring, Protocol::LL128, 1, 640};
  EXPECT_NEAR(hop_us(machine, topology, AllGather, ring, {4'000'000}), 26 + 60.0000572, 1e-6);
}

TEST_F(RingOfNodes, HidesStepsAndHopsBehindLargeParts) {
  // Parts of 256 KiB. Steps, hidden from 128 KiB on: 1 / sqrt(1 + 2^2) = 0.4472136 of 2.5 * 4.
  // 768 KiB: 7.86432 through the port, 3.93216 through the NICs, side by side 7.8643275. Hops of
  // 1.5 * 10 would be half hidden, but so short a transfer hides less: 3.93216 / (0.6495 * 15) =
  // 0.4036089, 1 / (1 + that^2) = 0.859919 of 15.
  const Choice ring{Algorithm::Ring, Protocol::Simple, 1, 544};
  EXPECT_NEAR(hop_us(machine, topology, AllGather, ring, 1_MiB),
              5.472136 + 15 * 0.859919 + 7.8643275, 1e-4);
}

TEST_F(RingOfNodes, BySimpleTakesNoStepFasterThanTheNetworksPace) {
  const auto set = [this](Param param, double value) {
    machine.set(param, {value, 0, ParameterClass::Assumed, "", ""});
  };
  set(NcclNetRingPace, 100e-6);
  set(NcclNetRingSmallPart, 128 * 1024);
  set(NcclNetRingSmallPace, 150e-6);
  set(NcclAllReduceSimpleBase, 0);
  set(NcclAllReduceSimpleStep, 0);
  const Choice ring{Algorithm::Ring, Protocol::Simple, 1, 544};
  // 4 ranks: 6 steps of two messages. Parts of 128 KiB are slow, of 256 KiB no longer; all-gathers
  // have 3 steps. Parts of 32 KiB are one message.
  EXPECT_NEAR(hop_us(machine, topology, AllReduce, ring, 512_KiB), 6 * 300, 1e-9);
  EXPECT_NEAR(hop_us(machine, topology, AllReduce, ring, 1_MiB), 6 * 200, 1e-9);
  EXPECT_NEAR(hop_us(machine, topology, AllGather, ring, 512_KiB), 3 * 200, 1e-9);
  EXPECT_NEAR(hop_us(machine, topology, AllGather, ring, 128_KiB), 3 * 100, 1e-9);
  // 400 MB: 600 MB through the port are longer than any pace.
  EXPECT_GT(hop_us(machine, topology, AllReduce, ring, {400'000'000}), 6000);
}

TEST_F(RingOfNodes, SendsAMessageOfEachChannelAfterTheOtherByLlWhereTheMachineSaysSo) {
  const auto set = [this](Param param, double value) {
    machine.set(param, {value, 0, ParameterClass::Assumed, "", ""});
  };
  set(NcclAllGatherLlBase, 0);
  set(NcclAllGatherLlStep, 0);
  set(NcclNetRingLlStep, 20e-6);
  set(NcclNetRingLlRate, 50e9);
  set(NetworkEager, 0);
  set(NetworkRendezvous, 7e-6);
  const auto us = [&](std::uint32_t channels, Bytes bytes) {
    const Choice ring{Algorithm::Ring, Protocol::LL, channels, 512};
    return hop_us(machine, topology, AllGather, ring, bytes);
  };
  EXPECT_NEAR(us(4, {1600}), 1.5 * (20 + 7), 0.1);
  set(NcclNetRingChannel, 10e-6);
  EXPECT_NEAR(us(1, {1600}), 1.5 * 20, 0.1) << "nobody asks";
  EXPECT_NEAR(us(4, {1600}), 1.5 * (20 + 3 * 10), 0.1);
  EXPECT_NEAR(us(4, {400'000'000}), us(1, {400'000'000}), 1e-6) << "hops hide behind bytes";
}

TEST(HopTime, OfPatHasAsManyHopsAsRanksHaveBits) {
  const Machine machine = test::small_machine({{NcclAllGatherSimpleBase, 1e-6},
                                               {NcclNetRingLlStep, 0},
                                               {NcclNetRingSimpleStep, 10e-6},
                                               {NcclNetEfficiency, 0.5}});
  const Choice pat{Algorithm::Pat, Protocol::Simple, 1, 640};
  // 4 nodes with one GPU: 1 + 2 * 10. 3/4 of 4 MB: 30 through the port, 15 through the NICs.
  EXPECT_NEAR(hop_us(machine, test::nodes_of(4, 1), AllGather, pat, {4'000'000}), 66, 1e-9);
}

TEST(HopTime, ThroughTheHostsMemoryIsARingWithAShareForLl) {
  const Machine machine = test::small_machine({{NcclReduceScatterLlBase, 1e-6},
                                               {NcclReduceScatterLlStep, 0.5e-6},
                                               {NcclHostLlShare, 0.25}});
  Topology topology = test::nodes_of(1, 2);
  topology.link = Link::PciHost;
  const Choice ring{Algorithm::Ring, Protocol::LL, 1, 512};
  // 2 ranks: 1 + (1 + 1) * 0.5 = 2. Half of 100 kB at a quarter of 100 GB/s: 2.
  EXPECT_NEAR(hop_us(machine, topology, ReduceScatter, ring, {100'000}), 4, 1e-9);
}

TEST(HopTime, IsNotKnownForGpusThatMayNotUseTheirNvlink) {
  const Machine machine = test::small_machine({{NcclTreeLlBase, 2e-6}, {NcclTreeLlStep, 0.5e-6}});
  Tuning tuning;
  tuning.topology = test::nodes_of(1, 8);
  tuning.settings = Settings{{"NCCL_P2P_DISABLE=1"}};
  Reading read{machine};
  const Choice tree{Algorithm::Tree, Protocol::LL, 1, 640};
  EXPECT_FALSE(hop_time(read, tuning, AllReduce, tree, {8000}));
}

}  // namespace
}  // namespace foretrace::nccl
