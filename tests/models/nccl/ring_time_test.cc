// Rings and chains on the NVLinks of one node, term by term. us = 1e-6 s; a port moves 100 GB/s.
#include "models/nccl/time/ring_time.h"

#include <gtest/gtest.h>

#include "tests/models/nccl/small_machine.h"

namespace foretrace::nccl {
namespace {

using namespace literals;
using enum CollectiveKind;
using enum Param;

double ring_us(const Machine& machine, CollectiveKind kind, Choice choice, Bytes bytes,
               std::uint32_t ranks) {
  Reading read{machine};
  const auto terms = ring_time(read, kind, choice, bytes, ranks);
  return terms ? terms->seconds * 1e6 : -1;
}

constexpr Choice ll(std::uint32_t channels, std::uint32_t threads = 512) {
  return {Algorithm::Ring, Protocol::LL, channels, threads};
}
constexpr Choice ll128(std::uint32_t channels) {
  return {Algorithm::Ring, Protocol::LL128, channels, 640};
}
constexpr Choice simple(std::uint32_t channels) {
  return {Algorithm::Ring, Protocol::Simple, channels, 544};
}

class RingLl : public testing::Test {
 protected:
  Machine machine = test::small_machine(
      {{NcclAllReduceLlBase, 1e-6}, {NcclAllReduceLlStep, 0.5e-6}, {NcclAllReduceLlRound, 0.1e-6}});
};

TEST_F(RingLl, IsItsBaseAndForEachStepAFixedPartAndARoundOfAllThreads) {
  // 4 ranks: 2 * 4 - 1 = 7 steps. Each rank's part, 4 KiB, is one round of 512 threads * 8 bytes.
  // 1 + 7 * (0.5 + 0.1) = 5.2
  EXPECT_NEAR(ring_us(machine, AllReduce, ll(1), 16_KiB, 4), 5.2, 1e-9);
}

TEST_F(RingLl, TakesMoreButShorterRoundsOfFewerThreads) {
  // 256 threads: two rounds of 0.1 * (0.2 + 0.8 * 256 / 512) = 0.06 each.
  // 1 + 7 * (0.5 + 2 * 0.06) = 5.34
  EXPECT_NEAR(ring_us(machine, AllReduce, ll(1, 256), 16_KiB, 4), 5.34, 1e-9);
}

TEST_F(RingLl, PaysForItsStepsInEveryPassOf32KiBForEachRank) {
  // 48 KiB for each of 4 ranks: a pass of 32 KiB, 8 rounds, and one of 16 KiB, 4 rounds.
  // 1 + 7 * (0.5 + 0.8) + 7 * (0.5 + 0.4) = 16.4
  EXPECT_NEAR(ring_us(machine, AllReduce, ll(1), 192_KiB, 4), 16.4, 1e-9);
}

TEST_F(RingLl, BeginsLaterForEachDoublingOfItsChannels) {
  machine.set(NcclChannelDoubling, {0.25e-6, 0, ParameterClass::Assumed, "", ""});
  // 4 channels with 4 KiB for each rank: two doublings. 5.2 + 2 * 0.25 = 5.7
  EXPECT_NEAR(ring_us(machine, AllReduce, ll(4), 64_KiB, 4), 5.7, 1e-9);
}

TEST(RingLl128, AddsTheWireItsStepsAndWhatItsChannelsDriftApart) {
  const Machine machine = test::small_machine({{NcclAllGatherLl128Base, 1e-6},
                                               {NcclAllGatherLl128Step, 3e-6},
                                               {NcclAllGatherLl128Drift, 10e-6}});
  // 8 MiB over 2 ranks and 2 channels: 4 MiB through each port, 41.94304 us; 2 steps; each channel
  // has 2 MiB for each rank, which is what the drift is given for.
  // 1 + 41.94304 + 2 * 3 + 10 = 58.94304
  EXPECT_NEAR(ring_us(machine, AllGather, ll128(2), 8_MiB, 2), 58.94304, 1e-9);
}

class RingSimple : public testing::Test {
 protected:
  Machine machine = test::small_machine({{NcclAllReduceSimpleBase, 1e-6},
                                         {NcclAllReduceSimpleStep, 5e-6},
                                         {NcclAllReduceSimpleDrift, 64e-6},
                                         {NcclAllReduceSimplePower, 1}});
};

TEST_F(RingSimple, HidesItsStepsBehindLargeParts) {
  // 96 KiB for each of 2 ranks, hidden from 128 KiB on: 1 / sqrt(1 + 0.75^2) = 0.8 of 3 steps
  // shows. 192 KiB through a port: 1.96608 us. Drift: 64 * 96 KiB / 2 MiB = 3.
  // 1 + 1.96608 + 3 * 5 * 0.8 + 3 = 17.96608
  EXPECT_NEAR(ring_us(machine, AllReduce, simple(1), 192_KiB, 2), 17.96608, 1e-9);
}

TEST_F(RingSimple, DriftsByAPowerOfItsPart) {
  machine.set(NcclAllReduceSimplePower, {0.5, 0, ParameterClass::Assumed, "", ""});
  machine.set(NcclAllReduceSimpleStep, {0, 0, ParameterClass::Assumed, "", ""});
  // 512 KiB for each rank: 64 * (1/4)^0.5 = 32; 1 MiB through a port: 10.48576.
  EXPECT_NEAR(ring_us(machine, AllReduce, simple(1), 1_MiB, 2), 1 + 10.48576 + 32, 1e-9);
}

TEST_F(RingSimple, IsHeldUpByItsChannelsRateWhereThatIsTheBottleneck) {
  machine.set(NcclAllReduceSimpleStep, {0, 0, ParameterClass::Assumed, "", ""});
  machine.set(NcclAllReduceSimpleDrift, {0, 0, ParameterClass::Assumed, "", ""});
  // 1 MiB on 2 ranks: 10.48576 us of wire; 3 steps of 512 KiB through a channel of 150 GB/s as
  // well. The norm of two equal times by the exponent 8: 10.48576 * 2^(1/8) = 11.434802
  machine.set(NcclAllReduceChannelRate, {150e9, 0, ParameterClass::Assumed, "", ""});
  EXPECT_NEAR(ring_us(machine, AllReduce, simple(1), 1_MiB, 2), 1 + 11.434802, 1e-6);
}

TEST(ChainLl, FillsItsRanksOneBehindTheOther) {
  const Machine machine = test::small_machine(
      {{NcclBroadcastLlBase, 1e-6}, {NcclBroadcastLlStep, 2e-6}, {NcclBroadcastLlRound, 0.1e-6}});
  // 3 ranks behind the root * 2; one round. 1 + 6 + 0.1 = 7.1
  EXPECT_NEAR(ring_us(machine, Broadcast, ll(1), 4_KiB, 4), 7.1, 1e-9);
  // Four rounds. 1 + 6 + 0.4 = 7.4
  EXPECT_NEAR(ring_us(machine, Broadcast, ll(1), 16_KiB, 4), 7.4, 1e-9);
}

TEST(ChainSimple, FillsItsRanksStepByStep) {
  const Machine machine = test::small_machine({{NcclReduceSimpleBase, 1e-6},
                                               {NcclReduceSimpleStep, 4e-6},
                                               {NcclReduceSimpleDrift, 16e-6},
                                               {NcclReduceSimplePower, 1}});
  // 256 KiB: wire 2.62144; drift 16 / 8 = 2; a rank passes all of it on at once, 4 + 2.62144 behind
  // the one before. 1 + 2.62144 + 2 + 3 * 6.62144 = 25.48576
  EXPECT_NEAR(ring_us(machine, Reduce, simple(1), 256_KiB, 4), 25.48576, 1e-9);
  // 1 MiB in two channels: a step of 512 KiB in each, both through one port: 10.48576 as the wire;
  // drift 16 / 4. 1 + 10.48576 + 4 + 3 * 14.48576 + the doubling of channels, 0 here
  EXPECT_NEAR(ring_us(machine, Reduce, simple(2), 1_MiB, 4), 58.94304, 1e-9);
}

TEST(ChainSimple, LastRankOnlyEmptiesItsBuffers) {
  const Machine machine = test::small_machine({{NcclReduceSimpleBase, 1e-6},
                                               {NcclReduceSimpleStep, 4e-6},
                                               {NcclReduceSimpleDrift, 16e-6},
                                               {NcclReduceSimplePower, 1},
                                               {NcclReduceLast, 131.072e9}});
  // 256 KiB as above, 2 ranks behind the first 6.62144 each; the root 256 KiB / 131.072 GB/s = 2.
  EXPECT_NEAR(ring_us(machine, Reduce, simple(1), 256_KiB, 4), 1 + 2.62144 + 2 + 2 * 6.62144 + 2,
              1e-9);
  EXPECT_NEAR(ring_us(machine, Reduce, simple(1), 256_KiB, 2), 1 + 2.62144 + 2 + 2, 1e-9);
  // Never more of it than one step of 512 KiB: 16 MiB, wire 167.77216, drift 128.
  EXPECT_NEAR(ring_us(machine, Reduce, simple(1), 16_MiB, 2), 1 + 167.77216 + 128 + 4, 1e-9);
}

TEST(RingTime, IsNotKnownWhereTheMachineHasNoTimesOrTheChoiceIsNoRing) {
  const Machine machine = test::small_machine({});
  EXPECT_EQ(ring_us(machine, AllReduce, ll(1), 4_KiB, 2), -1);
  Choice tree = ll(1);
  tree.algorithm = Algorithm::Tree;
  const Machine timed = test::small_machine({{NcclAllReduceLlBase, 1e-6}});
  EXPECT_EQ(ring_us(timed, AllReduce, tree, 4_KiB, 2), -1);
}

}  // namespace
}  // namespace foretrace::nccl
