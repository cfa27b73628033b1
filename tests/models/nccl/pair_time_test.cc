// Sends and receives, term by term. us = 1e-6 s; a port moves 100 GB/s.
#include "models/nccl/time/pair_time.h"

#include <gtest/gtest.h>

#include "models/nccl/time/collective_time.h"
#include "models/nccl/time/cost.h"
#include "tests/models/nccl/small_machine.h"

namespace foretrace::nccl {
namespace {

using namespace literals;
using enum Param;

CollectiveTime time_of(const Machine& machine, const Topology& topology, Exchange exchange,
                       Bytes size, std::uint32_t peers, Peer peer = Peer::SameNode,
                       const Settings& settings = {}) {
  Reading read{machine};
  return pair_time(read, tune(topology, {2, 28, 3}, settings), exchange, size, peers, peer);
}

double pair_us(const Machine& machine, Exchange exchange, Bytes size, std::uint32_t peers) {
  return time_of(machine, test::nodes_of(1, 4), exchange, size, peers).terms.seconds * 1e6;
}

TEST(PairTime, OfLlAddsItsChannelAndThePortWithFlags) {
  const Machine machine = test::small_machine({{NcclSendRecvLlBase, 2e-6},
                                               {NcclSendRecvLlRate, 5e9},
                                               {NcclSendRecvPort, 0.8},
                                               {NcclChannelDoubling, 0.25e-6}});
  // 1000 bytes are on one channel: 0.2 at 5 GB/s. Twice as many through 80 GB/s: 0.025.
  EXPECT_NEAR(pair_us(machine, Exchange::SendRecv, {1000}, 1), 2.225, 1e-9);
}

TEST(PairTime, OfLlOneWayHasItsThreadsForItself) {
  const Machine machine = test::small_machine({{NcclSendRecvLlBase, 2e-6},
                                               {NcclSendRecvLlRate, 5e9},
                                               {NcclSendRecvSimpleRate, 20e9},
                                               {NcclSendRecvSimpleLast, 50e9},
                                               {NcclSendRecvPort, 0.8},
                                               {NcclChannelDoubling, 0.25e-6}});
  // 1000 bytes at 2.5 times 5 GB/s: 0.08, of which a part beside the port's 0.025 as before.
  EXPECT_NEAR(pair_us(machine, Exchange::OneWay, {1000}, 1), 2.105, 1e-9);
}

class PairSimple : public testing::Test {
 protected:
  Machine machine = test::small_machine({{NcclSendRecvLlBase, 0},
                                         {NcclSendRecvSimpleBase, 10e-6},
                                         {NcclSendRecvSimpleRate, 20e9},
                                         {NcclSendRecvSimpleLast, 1000e9},
                                         {NcclSendRecvPort, 0.8},
                                         {NcclPairOverlap, 1},
                                         {NcclPairOverlapGrowth, 1}});
  /// Of 128 MiB: the channels' and the port's.
  std::uint32_t channels = transfer_of(tune(test::nodes_of(1, 4), {2, 28, 3}), 128_MiB).channels;
  double port_us = 134'217'728.0 / 80e3;
};

TEST_F(PairSimple, BothWaysHidesNeitherTheFirstStepsWayNorTheLastOnesCopy) {
  // 8 channels with 16 MiB, 32 steps, each. The first goes through the port in a 32nd of
  // 1677.7216 (128 MiB at 80 GB/s) and is copied in 0.524288. The other 31 take a channel 812.6464
  // at 20 GB/s and the port twice that: 1625.2928 * (1 + 2^-6)^(1/6), for 1 + log2(1 + 31) = 6.
  ASSERT_EQ(channels, 8u);
  EXPECT_NEAR(pair_us(machine, Exchange::SendRecv, 128_MiB, 1), 10 + 52.953088 + 1629.49803, 1e-4);
  // A single step: nothing overlaps. 4 MiB at 80 GB/s, and 512 KiB at 1000 GB/s.
  EXPECT_NEAR(pair_us(machine, Exchange::SendRecv, 4_MiB, 1), 10 + 52.4288 + 0.524288, 1e-6);
}

TEST_F(PairSimple, BothWaysPaysForWhatTheLevelTwoCacheDoesNotHold) {
  // 4 MiB through 8 steps that are all used in turn, and two buffers of the program: 40 MiB. Of a
  // tenth of them as cache nearly everything is missing, and twice 4 MiB at 1000 GB/s
  // take 8.388608.
  machine = test::small_machine({{NcclSendRecvLlBase, 0},
                                 {NcclSendRecvSimpleBase, 10e-6},
                                 {NcclSendRecvSimpleRate, 20e9},
                                 {NcclSendRecvSimpleLast, 1000e9},
                                 {NcclSendRecvPort, 0.8},
                                 {NcclPairOverlap, 1},
                                 {NcclPairOverlapGrowth, 1},
                                 {FillBandwidth, 1000e9},
                                 {L2Size, 4.0 * 1048576}});
  const double without = 10 + 52.4288 + 0.524288;
  EXPECT_NEAR(pair_us(machine, Exchange::SendRecv, 4_MiB, 1), without + 8.388608, 0.002);
  // A cache of 48 MiB holds all 40.
  machine = test::small_machine({{NcclSendRecvLlBase, 0},
                                 {NcclSendRecvSimpleBase, 10e-6},
                                 {NcclSendRecvSimpleRate, 20e9},
                                 {NcclSendRecvSimpleLast, 1000e9},
                                 {NcclSendRecvPort, 0.8},
                                 {FillBandwidth, 1000e9},
                                 {L2Size, 48.0 * 1048576}});
  EXPECT_NEAR(pair_us(machine, Exchange::SendRecv, 4_MiB, 1), without, 1e-6);
}

TEST(PairTime, OfPartsThatDoNotBeginAlignedTakesLonger) {
  const Machine machine = test::small_machine({{NcclAllToAllLlBase, 0},
                                               {NcclAllToAllSimpleBase, 1e-6},
                                               {NcclAllToAllSimpleDrift, 8e-6},
                                               {NcclExchangePower, 0.5},
                                               {NcclAllToAllPort, 1}});
  const auto beside = [&](Exchange exchange, std::uint64_t more) {
    const Bytes part{(std::uint64_t{64} << 20) + more};
    return time_of(machine, test::nodes_of(1, 2), exchange, part, 1).terms.channel_seconds;
  };
  const double wire = 64.0 * 1048576 / 100e9;  // of 64 MiB through a port of 100 GB/s
  const double aligned = beside(Exchange::AllToAll, 0);
  EXPECT_NEAR(beside(Exchange::AllToAll, 16), aligned, wire * 1e-5);
  EXPECT_NEAR(beside(Exchange::AllToAll, 4), aligned + 1.6 * wire, wire * 1e-5);
}

TEST(Behind, IsTheWireAndWhatChannelsDoNotHideBesideIt) {
  const Machine machine = test::small_machine({{NvlinkBandwidth, 100e9}});
  Cost cost{.choice = {Algorithm::Ring, Protocol::Simple, 8, 544},
            .latency = Duration{20_us},
            .wire_bytes = {1'000'000}};
  EXPECT_EQ(behind(machine, cost, Duration{0}), 25_us);
  EXPECT_EQ(behind(machine, cost, Duration{12_us}), 16_us) << "12 us are those of others ahead";
  cost.choice.protocol = Protocol::LL;
  EXPECT_EQ(behind(machine, cost, Duration{0}), 22_us);
  EXPECT_EQ(behind(machine, cost, Duration{0}, false), 19'200_ns) << "in one direction";
}

TEST_F(PairSimple, OneWayIsTheLongerOfChannelsAndPortAndTheReceiversCopy) {
  EXPECT_NEAR(pair_us(machine, Exchange::OneWay, 128_MiB, 1), 10 + port_us + 0.524288, 1e-9);
  const Cost cost = send_recv_cost(machine, tune(test::nodes_of(1, 4), {2, 28, 3}), 128_MiB, false);
  EXPECT_EQ(cost.hops(2).count(), 524288) << "the receiver's kernel ends later by as much";
}

TEST_F(PairSimple, OnABoardWithoutSwitchesIsHeldUpByTheLinksOfThePair) {
  Topology board = test::nodes_of(1, 4);
  board.link = Link::NvLinkMesh;
  // A third of 100 GB/s: 128 MiB take 4026.53184.
  EXPECT_NEAR(time_of(machine, board, Exchange::SendRecv, 128_MiB, 1).terms.seconds * 1e6,
              10 + 4026.53184, 1e-6);
}

TEST(PairTime, OfManyPeersAddsWhatItsChannelsDriftApart) {
  const Machine machine = test::small_machine({{NcclAllToAllLlBase, 0},
                                               {NcclAllToAllSimpleBase, 1e-6},
                                               {NcclAllToAllSimpleDrift, 8e-6},
                                               {NcclExchangePower, 0.5},
                                               {NcclAllToAllPort, 1}});
  const std::uint32_t channels =
      transfer_of(tune(test::nodes_of(1, 4), {2, 28, 3}), 64_MiB).channels;
  // 64 MiB with each of 3 peers at 100 GB/s: 2013.26592. On 8 channels that is 16 steps of 512 KiB
  // for each peer: 8 * 16^0.5 = 32.
  ASSERT_EQ(channels, 8u);
  EXPECT_NEAR(pair_us(machine, Exchange::AllToAll, 64_MiB, 3), 1 + 2013.26592 + 32, 1e-6);
}

TEST(PairTime, BetweenNodesIsTheSlowerOfNicsAndPort) {
  const Machine machine =
      test::small_machine({{NcclNetExchangeBase, 20e-6}, {NcclNetExchangeEfficiency, 0.5}});
  const auto us = [&](Exchange exchange, std::uint32_t peers) {
    return time_of(machine, test::nodes_of(2, 8), exchange, {1'000'000}, peers, Peer::OtherNode)
               .terms.seconds *
           1e6;
  };
  // A NIC of 50 GB/s moves 25 for NCCL, one for each GPU. 1 MB to a peer: 40.
  EXPECT_NEAR(us(Exchange::SendRecv, 1), 60, 1e-9);
  // Each of 8 GPUs to each of 8 over 8 NICs: 320. 7 MB to its own node through the port: 70.
  EXPECT_NEAR(us(Exchange::AllToAll, 15), 410, 1e-9);
  // All of the 8 through the root's NIC: 320.
  EXPECT_NEAR(us(Exchange::Gather, 15), 410, 1e-9);
}

TEST(PairTime, OfAnAllToAllOverNodesIsLongerWhereItsMessagesAreTooSmall) {
  const Machine machine = test::small_machine({{NcclNetExchangeBase, 20e-6},
                                               {NcclNetExchangeEfficiency, 0.5},
                                               {NcclNetExchangeSmall, 128},
                                               {NcclNetExchangeSmallPeer, 10e-6}});
  const auto us = [&](Exchange exchange, std::uint64_t bytes) {
    return time_of(machine, test::nodes_of(2, 8), exchange, {bytes}, 15, Peer::OtherNode)
               .terms.seconds *
           1e6;
  };
  EXPECT_NEAR(us(Exchange::AllToAll, 128), 100, 0.1) << "10 us for each of eight peers elsewhere";
  EXPECT_NEAR(us(Exchange::AllToAll, 132), 20, 0.1);
  EXPECT_NEAR(us(Exchange::Gather, 128), 20, 0.1);
}

TEST(PairTime, IsARingsLatencyAndThePortWhereTheMachineHasNoTimes) {
  const Machine machine = test::small_machine({});
  const CollectiveTime time = time_of(machine, test::nodes_of(1, 4), Exchange::SendRecv, 1_MiB, 1);
  EXPECT_EQ(time.model, Model::Price);
  // NCCL's own latency of an all-gather's ring; 1 MiB at 100 GB/s.
  EXPECT_NEAR(time.terms.channel_seconds * 1e6, 10.48576, 1e-9);
  EXPECT_EQ(time.terms.seconds, time.terms.fixed_seconds + time.terms.channel_seconds);
}

/// Of two ranks of a node of H200s.
double rooted_us(CollectiveKind kind, Bytes size, std::uint32_t root) {
  static const Machine kMachine = load_machine("h200-nvswitch-8");
  Call call{kind, size};
  call.root = root;
  Reading read{kMachine};
  return collective_time(read, tuning_for(kMachine, 2, 1, {}), call).terms.seconds * 1e6;
}

TEST(PairTime, OfPartsThatBeginAnywhereIsThatOfTheRanksWhoseBeginsAreNoMultipleOf16) {
  // Of two ranks with root 1, rank 0's part begins the root's buffer; the root copies its own at
  // 212 GB/s. With root 0, rank 1's part goes at 175 GB/s.
  constexpr double kBytes = 90'348'990;
  const double aligned = rooted_us(CollectiveKind::Gather, {90'348'992}, 1);
  EXPECT_NEAR(rooted_us(CollectiveKind::Gather, {90'348'990}, 1), 4.9 + kBytes / 212e3, 1);
  EXPECT_NEAR(rooted_us(CollectiveKind::Gather, {90'348'990}, 0), 4.9 + kBytes / 175e3, 5);
  EXPECT_NEAR(rooted_us(CollectiveKind::Scatter, {90'348'990}, 0), 5.2 + kBytes / 212e3, 10);
  EXPECT_NEAR(rooted_us(CollectiveKind::Gather, {90'348'992}, 0), aligned, 1e-6);
  // Few bytes of its own are copied before the others' have come.
  EXPECT_NEAR(rooted_us(CollectiveKind::Scatter, {2'029'384}, 1),
              rooted_us(CollectiveKind::Scatter, {2'029'392}, 1), 0.01);
}

}  // namespace
}  // namespace foretrace::nccl
