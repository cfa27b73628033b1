// NCCL's rules against worked numbers: one NVSwitch node, 12 search channels of 30 GB/s, NCCL 2.28.
#include "models/nccl/rules/tuning.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "models/machine/machine.h"
#include "models/nccl/rules/p2p.h"
#include "models/nccl/rules/plan.h"
#include "models/nccl/time/collective_time.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::nccl {
namespace {

using namespace literals;
using enum Protocol;

Tuning tuning_of(std::uint32_t ranks) {
  Topology topology;
  topology.gpus_per_node = ranks;
  topology.multicast = false;
  return tune(topology, {2, 28, 3}, {}, Rings{12, 30});
}

Candidate price(std::uint32_t ranks, Algorithm algorithm, Protocol protocol, Bytes bytes) {
  for (const Candidate& c : priced_candidates(tuning_of(ranks), {Function::AllReduce, bytes})) {
    if (c.algorithm == algorithm && c.protocol == protocol) return c;
  }
  ADD_FAILURE() << "no such candidate";
  return {};
}

Plan plan_of_eight(Bytes bytes) { return plan_of(tuning_of(8), {Function::AllReduce, bytes}); }

TEST(NcclPrices, OfARingOfEightRanksMatchTheWorkedExample) {
  // Simple: 8.4 + 14 * 3.4 = 56.0 us; 360 * 8 / 14 = 205.714 GB/s;
  // 1 GiB: 56.0 + 1073741824 / 205714 = 5275.6 us.
  const Candidate p = price(8, Algorithm::Ring, Simple, 1024_MiB);
  EXPECT_NEAR(p.latency_us, 56.0, 1e-5);
  EXPECT_NEAR(p.bandwidth_gbps, 205.714, 1e-3);
  EXPECT_NEAR(p.price_us, 5275.6, 0.1);
}

TEST(NcclPrices, OfLowLatencyProtocolsAreCappedByThem) {
  // LL: min(141, 360 / 2) * 8 / 14 = 80.57; 6.6 + 14 * 0.6 = 15.0; 8 KiB: 15.10 us.
  const Candidate ll = price(8, Algorithm::Ring, LL, 8_KiB);
  EXPECT_NEAR(ll.bandwidth_gbps, 80.571, 1e-3);
  EXPECT_NEAR(ll.price_us, 15.10, 0.005);
  // LL128: min(0.92 * 360, 12 * 36.7) * 8 / 14 = 189.26
  const Candidate ll128 = price(8, Algorithm::Ring, LL128, 8_KiB);
  EXPECT_NEAR(ll128.bandwidth_gbps, 189.257, 1e-3);
  EXPECT_NEAR(ll128.latency_us, 40.6, 1e-5);
}

TEST(NcclPrices, OfATreeCarryItsCorrectionFactor) {
  // T = min(0.92 * 360, 12 * 38.7) = 331.2; LL: 331.2 / 3.8 / 2 = 43.579, times 0.7 at 8 KiB.
  // 6.8 + 2 * 7 * 0.6 = 15.2; 15.2 + 8192 / (43579 * 0.7) = 15.47 us.
  EXPECT_NEAR(price(8, Algorithm::Tree, LL, 8_KiB).price_us, 15.47, 0.005);
}

/// Nodes of 4 A100s on Slingshot, by the rules of a release.
Tuning tuning_of_nodes(std::uint32_t nodes, const char* version) {
  Machine machine = load_machine("a100-slingshot-4");
  machine.nccl_version = version;
  return tuning_for(machine, 4 * nodes, nodes, {});
}

TEST(NcclPrices, OfATreeBySimpleAreThoseOfTheRelease) {
  // 2.18.3: 2 * (3 * 4 + 14) = 52 us; 2.19 to 2.22 have 28 us for each hop, 2 * (3 * 28 + 28) =
  // 224; 2.23: 8.4 + 52.
  const auto latency = [](const char* version) {
    return tuning_of_nodes(2, version)
        .latency[index_of(Function::AllReduce)][index_of(Algorithm::Tree)][index_of(Simple)];
  };
  EXPECT_NEAR(latency("2.18.3"), 52, 1e-4);
  EXPECT_NEAR(latency("2.19.3"), 224, 1e-4);
  EXPECT_NEAR(latency("2.22.3"), 224, 1e-4);
  EXPECT_NEAR(latency("2.23.4"), 60.4, 1e-4);
}

TEST(NcclPrices, OfARingByLlGrewWithTheRelease) {
  // 2 NICs of 24 GB/s. To 2.20 a quarter of it, then half, times 8 / 14; below AMD's 22.5.
  const auto bandwidth = [](const char* version) {
    return tuning_of_nodes(2, version)
        .bandwidth[index_of(Function::AllReduce)][index_of(Algorithm::Ring)][index_of(LL)];
  };
  EXPECT_NEAR(bandwidth("2.20.3"), 12 * 8 / 14.0, 1e-4);
  EXPECT_NEAR(bandwidth("2.21.5"), 22.5 * 8 / 14.0, 1e-4);
}

TEST(NcclChoice, BetweenTreeAndRingIsTheReleases) {
  // argonne-lcf/alcf-nccl-tests, 512 KiB: 220 and 427 us on 2 and 8 nodes by 2.18, 464 and 1777 by
  // 2.21.5, whose price of a tree sends it to a ring by LL.
  const auto taken = [](std::uint32_t nodes, const char* version) {
    const Plan plan = plan_of(tuning_of_nodes(nodes, version), {Function::AllReduce, 512_KiB});
    return std::pair{plan.algorithm, plan.protocol};
  };
  for (const std::uint32_t nodes : {2u, 8u}) {
    EXPECT_EQ(taken(nodes, "2.18"), (std::pair{Algorithm::Tree, Simple}));
    EXPECT_EQ(taken(nodes, "2.21.5"), (std::pair{Algorithm::Ring, LL}));
  }
}

TEST(NcclVersion, IsReadWithoutItsPatchAndRefusedWhereItsRulesAreNotKnown) {
  EXPECT_EQ(parse_version("2.28"), (Version{2, 28, 0}));
  EXPECT_EQ(parse_version("2.18"), (Version{2, 18, 3}));
  EXPECT_THROW(parse_version("2.18.1"), UsageError);
  EXPECT_THROW(parse_version("2.17"), UsageError);
  EXPECT_THROW(parse_version("2.31.1"), UsageError);
}

TEST(NcclChoice, CrossesFromLlToLl128ToSimpleWhereThePricesDo) {
  // n = 8, all-reduce: LL up to 3.43 MiB, LL128 up to 34.7 MiB, Simple above.
  const auto protocol = [](Bytes bytes) { return plan_of_eight(bytes).protocol; };
  EXPECT_EQ(protocol(3_MiB), LL);
  EXPECT_EQ(protocol(4_MiB), LL128);
  EXPECT_EQ(protocol(34_MiB), LL128);
  EXPECT_EQ(protocol(36_MiB), Simple);
}

TEST(NcclChoice, TakesOneChannelPerStartedThirtyTwoKibibytesOfRingLl) {
  // n = 8: 512 threads * 64 bytes = 32 KiB a channel.
  EXPECT_EQ(plan_of_eight(8_KiB).channels, 1u);
  EXPECT_EQ(plan_of_eight(64_KiB).channels, 2u);
  EXPECT_EQ(plan_of_eight(1024_MiB).channels, 24u);
}

TEST(NcclChoice, OfSendRecvIsAStaircaseOfChannels) {
  // n = 8 starts with 4 channels and doubles when a part would exceed 16 MiB: 64 MiB / 4 = 16 MiB
  // stays, 128 MiB takes 8.
  const auto channels = [](Bytes bytes) { return transfer_of(tuning_of(8), bytes).channels; };
  EXPECT_EQ(channels(32_MiB), 4u);
  EXPECT_EQ(channels(64_MiB), 4u);
  EXPECT_EQ(channels(128_MiB), 8u);
  EXPECT_EQ(channels(512_MiB), 32u);
}

}  // namespace
}  // namespace foretrace::nccl
