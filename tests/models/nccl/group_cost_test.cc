// Collectives that one kernel runs together, against what each costs alone.
#include "models/nccl/time/group_cost.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "scenarios/base/values/units.h"

namespace foretrace::nccl {
namespace {

using namespace literals;
using enum CollectiveKind;

const Machine& machine() {
  static const Machine shipped = load_machine("h200-nvswitch-8");
  return shipped;
}

Tuning tuning(std::uint32_t ranks) { return tuning_for(machine(), ranks, 1, {}); }

/// As the simulator runs them alone on the machine: all latencies side by side, then the wires of
/// all through each port.
double kernel_us(const std::vector<Cost>& costs) {
  double latency = 0;
  double wire = 0;
  for (const Cost& cost : costs) {
    latency = std::max(latency, to_seconds(cost.latency));
    wire += static_cast<double>(cost.wire_bytes.count);
  }
  return 1e6 * (latency + wire / machine().rate(Param::NvlinkBandwidth));
}

double alone_us(std::uint32_t ranks, const Call& call) {
  return kernel_us({collective_cost(machine(), tuning(ranks), call)});
}

double together_us(std::uint32_t ranks, const std::vector<Call>& calls) {
  return kernel_us(group_cost(machine(), tuning(ranks), calls));
}

TEST(NcclGroupCost, OfOneCallIsItsOwn) {
  for (const CollectiveKind kind : {AllReduce, AllGather, ReduceScatter, Broadcast, Reduce}) {
    for (const Bytes size : {1_KiB, 1_MiB, 256_MiB}) {
      EXPECT_EQ(together_us(4, {{kind, size}}), alone_us(4, {kind, size}));
    }
  }
}

TEST(NcclGroupCost, OfEqualCallsIsBetweenTheirSumAsOneCallAndOneAfterAnother) {
  for (const std::uint32_t ranks : {2U, 3U, 4U, 8U}) {
    for (const Bytes size : {16_KiB, 512_KiB, 16_MiB, 256_MiB}) {
      const std::vector<Call> calls(8, {AllReduce, size});
      const double together = together_us(ranks, calls);
      EXPECT_GT(together, 0.95 * alone_us(ranks, {AllReduce, {8 * size.count}}))
          << ranks << " ranks, " << size.count << " bytes";
      EXPECT_LT(together, 8 * alone_us(ranks, {AllReduce, size}))
          << ranks << " ranks, " << size.count << " bytes";
    }
  }
}

TEST(NcclGroupCost, ServesPartsOfOneChannelOneAfterAnother) {
  // Measured on two and four H200s: eight all-reduces of 512 KiB take 49 and 52 us, one of 4 MiB
  // 33 and 39 us.
  const std::vector<Call> calls(8, {AllReduce, 512_KiB});
  EXPECT_GT(together_us(2, calls), 1.3 * alone_us(2, {AllReduce, 4_MiB}));
}

TEST(NcclGroupCost, IsNotChangedByACallWithoutData) {
  const std::vector<Call> two(2, {AllReduce, 16_MiB});
  EXPECT_EQ(together_us(4, {two[0], {AllReduce, {0}}, two[1]}), together_us(4, two));
}

TEST(NcclGroupCost, OfTwoCanBeMoreThanThatOfThree) {
  // Measured on two H200s: 40.1 and 30.7 us. Two calls share a channel, three do not.
  const std::vector<Call> two(2, {AllReduce, 1_MiB});
  const std::vector<Call> three(3, {AllReduce, 1_MiB});
  EXPECT_GT(together_us(2, two), 1.2 * together_us(2, three));
}

TEST(NcclGroupCost, GrowsWithAnyFurtherCall) {
  std::vector<Call> calls;
  double before = 0;
  for (const CollectiveKind kind : {AllReduce, AllGather, ReduceScatter, Broadcast, Reduce}) {
    calls.push_back({kind, 8_MiB});
    const double now = together_us(4, calls);
    EXPECT_GT(now, before);
    before = now;
  }
}

TEST(NcclGroupCost, OverSeveralNodesIsThatOfEachCallAlone) {
  const Machine cluster = load_machine("h100-efa-8");
  const Tuning two_nodes = tuning_for(cluster, 16, 2, {});
  const auto costs = group_cost(cluster, two_nodes, {{AllReduce, 1_MiB}, {AllReduce, 1_MiB}});
  const Cost alone = collective_cost(cluster, two_nodes, {AllReduce, 1_MiB});
  ASSERT_EQ(costs.size(), 2U);
  for (const Cost& cost : costs) {
    EXPECT_EQ(cost.latency, alone.latency);
    EXPECT_EQ(cost.wire_bytes, alone.wire_bytes);
  }
}

TEST(NcclGroupCost, OfARingDoesNotWaitForTheBaseOfAChainOnOtherChannels) {
  // Measured on two H200s: 28.8 us in a loop, an all-reduce of 2 MiB alone 25.
  const double together = together_us(2, {{AllReduce, 2_MiB}, {Broadcast, {524'288}}});
  EXPECT_LT(together, alone_us(2, {AllReduce, 2_MiB}) + 8);
}

TEST(NcclGroupCost, HidesASmallPartsStepsBehindTheDataOfOtherChannels) {
  // Measured on two H200s: 32 all-reduces of 1 MiB take 136 us, one of 32 MiB 135; some channels
  // have three of their parts, one of them a few KiB.
  const std::vector<Call> calls(32, {AllReduce, 1_MiB});
  EXPECT_LT(together_us(2, calls), 1.15 * alone_us(2, {AllReduce, 32_MiB}));
}

TEST(NcclGroupCost, PaysForTheStepsOfEachPartOfAChannel) {
  // By LL on one channel: its own steps, which are all but the base of one.
  const Tuning one_channel =
      tuning_for(machine(), 2, 1, {{"NCCL_MAX_CTAS", "1"}, {"NCCL_ALGO", "Ring"}});
  const auto us = [&](std::size_t calls) {
    return kernel_us(
        group_cost(machine(), one_channel, std::vector<Call>(calls, {AllReduce, 8_B})));
  };
  const double base = 1e6 * machine().get(Param::NcclAllReduceLlBase).value;
  EXPECT_NEAR(us(3) - us(2), us(1) - base, 0.01);
}

}  // namespace
}  // namespace foretrace::nccl
