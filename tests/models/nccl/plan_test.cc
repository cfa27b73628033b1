// NCCL's tables, choices and kernels against worked numbers and its own logs.
#include "models/nccl/rules/plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/nccl/rules/p2p.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::nccl {
namespace {

using namespace literals;
using enum Algorithm;
using enum Protocol;

Tuning tune(std::uint32_t gpus, const std::vector<std::string>& environment = {},
            Version version = {}) {
  Topology topology;
  topology.gpus_per_node = gpus;
  return tune(topology, version, Settings{environment});
}

Candidate candidate(const Tuning& tuning, const Request& request, Algorithm algorithm,
                    Protocol protocol) {
  for (const Candidate& c : priced_candidates(tuning, request)) {
    if (c.algorithm == algorithm && c.protocol == protocol) return c;
  }
  ADD_FAILURE() << "no such candidate";
  return {};
}

TEST(NcclPrices, OfThreeNodesAreTheDigitsThatNcclLogged) {
  // NVIDIA/nccl issue 1453: three nodes of eight H100, Intel; eight NICs of 200 Gb/s give these
  // digits, by search, tables and float arithmetic alike.
  Topology topology;
  topology.nodes = 3;
  topology.nic_gbps = 25;
  const Tuning tuning = tune(topology, {2, 28, 3});
  const auto price = [&](Bytes bytes, Protocol protocol) {
    return fmt::format("{:f}",
                       candidate(tuning, {Function::AllReduce, bytes}, Tree, protocol).price_us);
  };
  EXPECT_EQ(price(4_KiB, LL), "25.874907");
  EXPECT_EQ(price(8_KiB, LL), "26.549810");
  EXPECT_EQ(price(256_KiB, LL128), "54.707825");
}

TEST(NcclPrices, OfNvlsFollowItsRelease) {
  // 2.28: 8 heads * min(40 * .85 * 7/8 * 2, 60) * 8/14 = 272; before: 8 * 40 * 5/6 = 266.7.
  const Request request{Function::AllReduce, 1024_MiB};
  EXPECT_NEAR(candidate(tune(8), request, Nvls, Simple).bandwidth_gbps, 272, 1e-3);
  EXPECT_NEAR(candidate(tune(8, {}, {2, 27, 7}), request, Nvls, Simple).bandwidth_gbps, 266.667,
              1e-3);
}

TEST(NcclPrices, SayWhyACandidateIsOut) {
  const Request request{Function::AllReduce, 8_KiB};
  EXPECT_EQ(candidate(tune(8), request, CollNetDirect, Simple).out, "needs the CollNet plug-in");
  EXPECT_EQ(candidate(tune(8, {"NCCL_NVLS_ENABLE=0"}), request, Nvls, Simple).out, "no NVLS here");
  EXPECT_EQ(candidate(tune(8, {"NCCL_PROTO=^LL"}), request, Ring, LL).out, "NCCL_PROTO");
  EXPECT_EQ(candidate(tune(8, {"NCCL_P2P_DISABLE=1"}), request, Ring, LL128).out,
            "LL128 is not safe over SYS between GPUs");
  Request product = request;
  product.op = RedOp::Prod;
  EXPECT_EQ(candidate(tune(8), product, Nvls, Simple).out, "NVLS cannot reduce this type so");
}

TEST(NcclPrices, OfManyCallsInAGroupCountTheLatencyForEachOfAChannel) {
  Request request{Function::AllReduce, 8_KiB};
  const Tuning tuning = tune(8);
  request.pipelined = 3;
  EXPECT_NEAR(candidate(tuning, request, Ring, LL).latency_us, 3 * 15.0, 1e-4);
  // Other algorithms: one latency for each batch of ten.
  EXPECT_NEAR(candidate(tuning, request, Tree, LL).latency_us, 15.2, 1e-4);
}

TEST(NcclChoice, OnOneGpuPerNodeMayBePat) {
  Topology topology;
  topology.nodes = 8;
  topology.gpus_per_node = 1;
  topology.nics = 1;
  const Tuning tuning = tune(topology, {2, 28, 3});
  EXPECT_EQ(plan_of(tuning, {Function::AllGather, 64_KiB}).algorithm, Pat);
  EXPECT_EQ(candidate(tune(8), {Function::AllGather, 64_KiB}, Pat, Simple).out,
            "PAT needs one GPU per node");
}

TEST(NcclChoice, ThatTheSettingsLeaveEmptyIsRefused) {
  const Tuning tuning = tune(8, {"NCCL_ALGO=Tree"});
  EXPECT_EQ(plan_of(tuning, {Function::AllReduce, 8_KiB}).algorithm, Tree);
  EXPECT_THROW(plan_of(tuning, {Function::Broadcast, 8_KiB}), UsageError);
}

TEST(NcclPlan, CutsALargeRingIntoPassesOfChunksAndSlices) {
  // 1 GiB over 24 channels: 42.67 MiB each; a pass moves 8 chunks of 2 MiB, so 3 passes, each of
  // 14 chunks of 4 steps.
  const Plan plan = plan_of(tune(8, {"NCCL_NVLS_ENABLE=0"}), {Function::AllReduce, 1024_MiB});
  EXPECT_EQ(plan.channels, 24u);
  EXPECT_EQ(plan.threads, 544u);
  EXPECT_EQ(plan.middle.chunk_bytes, (2_MiB).count);
  EXPECT_EQ(plan.middle.slice_bytes, (1_MiB).count);
  EXPECT_EQ(plan.middle.loops, 3u);
  EXPECT_EQ(plan.middle.steps, 3u * 14 * 4);
  EXPECT_EQ(plan.low.bytes + 22 * plan.middle.bytes + plan.high.bytes, (1024_MiB).count);
}

TEST(NcclPlan, ListensToTheSettings) {
  const auto plan = [](const std::vector<std::string>& environment) {
    return plan_of(tune(8, environment), {Function::AllGather, 1024_MiB});
  };
  EXPECT_EQ(plan({"NCCL_MAX_CTAS=8"}).channels, 8u);
  EXPECT_EQ(plan({"NCCL_MIN_CTAS=32"}).channels, 32u);
  EXPECT_EQ(plan({"NCCL_MAX_NCHANNELS=4"}).channels, 4u);
  EXPECT_EQ(plan({"NCCL_NTHREADS=256", "NCCL_ALGO=Ring"}).threads, 288u);
  EXPECT_EQ(plan({"NCCL_BUFFSIZE=1048576", "NCCL_ALGO=Ring"}).middle.chunk_bytes, (512_KiB).count);
}

TEST(NcclPlan, OfAGroupSharesTheChannels) {
  const Tuning tuning = tune(8, {"NCCL_NVLS_ENABLE=0"});
  const std::vector<Plan> plans = plan_group(tuning, {{Function::AllReduce, 16_KiB},
                                                      {Function::AllReduce, 32_KiB},
                                                      {Function::AllGather, 64_MiB}});
  // The two all-reduces are chosen for as one of 48 KiB; the gather keeps its own choice.
  EXPECT_EQ(plans[0].price_us, plan_of(tuning, {Function::AllReduce, 48_KiB}).price_us);
  EXPECT_EQ(plans[0].protocol, LL);
  EXPECT_EQ(plans[1].price_us, plans[0].price_us);
  EXPECT_EQ(plans[2].protocol, Simple);
  EXPECT_EQ(kernel_channels(plans), 24u);
}

TEST(NcclTransfer, TakesLlByPeerAndFromTwoTwentyNineByChannel) {
  // 2.28: up to 32 channels * 16 KiB. 2.29: up to 16 KiB for each channel that Simple would take,
  // one for each started 64 KiB.
  EXPECT_EQ(transfer_of(tune(8), 512_KiB).protocol, LL);
  EXPECT_EQ(transfer_of(tune(8), {(512_KiB).count + 1}).protocol, Simple);
  EXPECT_EQ(transfer_of(tune(8, {}, {2, 29, 2}), 16_KiB).protocol, LL);
  EXPECT_EQ(transfer_of(tune(8, {}, {2, 29, 2}), 64_KiB).protocol, Simple);
}

TEST(NcclTransfer, OverPcieTakesTwoChannelsOfSmallChunks) {
  const Tuning tuning = tune(2, {"NCCL_P2P_DISABLE=1"});
  EXPECT_EQ(tuning.p2p_channels_per_peer, 2u);
  EXPECT_EQ(transfer_of(tuning, 64_MiB).channels, 2u);
  EXPECT_EQ(transfer_of(tuning, 64_MiB).chunk_bytes, (128_KiB).count);
}

}  // namespace
}  // namespace foretrace::nccl
