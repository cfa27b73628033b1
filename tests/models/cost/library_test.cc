// Kernels of libraries and the framework's time, derived.
#include "models/cost/library.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/models/cost/costed_machine.h"

namespace foretrace::cost {
namespace {

using namespace literals;

TEST(LibraryCost, IsAFixedPartAndBytesOverTheKindsRate) {
  const Machine machine = machine_of(
      {{Param::SmCount, 10}, {Param::LibrarySoftmaxBase, 2e-6}, {Param::LibrarySoftmaxRate, 1e12}});
  const KernelCost cost =
      answer(machine, library_cost, LibraryWork{.kernel = KernelKind::Softmax, .bytes = 3e6});
  EXPECT_EQ(cost.alone, 5_us);
  EXPECT_EQ(cost.clock.share, 0) << "the machine says nothing of the clock";
  EXPECT_DOUBLE_EQ(cost.hbm_bytes_per_second, 3e6 / 5e-6);
}

TEST(LibraryCost, TakesAttentionsRateByTheSizeOfItsHeads) {
  const Machine machine = machine_of({{Param::SmCount, 10},
                                      {Param::LibraryAttentionForwardBase, 1e-6},
                                      {Param::LibraryAttentionForwardRate64, 1e12},
                                      {Param::LibraryAttentionForwardRate128, 3e12}});
  const auto alone = [&](double width) {
    const LibraryWork work{.kernel = KernelKind::AttentionForward, .flops = 6e6, .width = width};
    return answer(machine, library_cost, work).alone;
  };
  EXPECT_EQ(alone(32), 7_us);
  EXPECT_EQ(alone(64), 7_us);
  EXPECT_EQ(alone(96), 4_us) << "half way: 2e12";
  EXPECT_EQ(alone(128), 3_us);
  EXPECT_GT(alone(192), 3_us);
  EXPECT_NEAR(to_seconds(alone(256)), 1e-6 + 6e6 / (0.96 * 3e12), 1e-11);
  EXPECT_EQ(alone(512), alone(256));
}

TEST(LibraryCost, FillsATileOf128WithNarrowerHeadsOnHopper) {
  const Machine machine = machine_of({{Param::SmCount, 10},
                                      {Param::ProductsHalfRate, 1e15},
                                      {Param::LibraryAttentionForwardBase, 1e-6},
                                      {Param::LibraryAttentionForwardRate64, 1e12},
                                      {Param::LibraryAttentionForwardRate128, 3e12}});
  const LibraryWork work{.kernel = KernelKind::AttentionForward, .flops = 6e6, .width = 80};
  EXPECT_NEAR(to_seconds(answer(machine, library_cost, work).alone), 1e-6 + 6e6 / (3e12 * 80 / 128),
              1e-11);
}

/// 100 SMs at 1 GHz, 1 PFLOP/s and 1 TB/s, of which attention reaches all.
Machine machine_of_facts() {
  return machine_of({{Param::SmCount, 100},
                     {Param::GpuClock, 1000},
                     {Param::GpuHalfFlops, 1e15},
                     {Param::HbmBandwidth, 1e12},
                     {Param::AttendsStart, 10e-6},
                     {Param::AttendsShare, 1},
                     {Param::AttendsVector, 0},
                     {Param::AttendsBlock, 0},
                     {Param::AttendsTile, 0},
                     {Param::AttendsFew, 1},
                     {Param::AttendsMemory, 1}});
}

/// 8 heads of 128, 4096 tokens that look at 2048 keys in the mean.
LibraryWork causal_work() {
  return {.kernel = KernelKind::AttentionForward,
          .flops = 4 * 8.0 * 4096 * 2048 * 128,
          .bytes = 8 * 8.0 * 4096 * 128,
          .width = 128};
}

double seconds_with(Param param, double value) {
  Machine machine = machine_of_facts();
  machine.set(param, {value, 0, ParameterClass::Assumed, "", ""});
  return to_seconds(answer(machine, library_cost, causal_work()).alone);
}

TEST(LibraryCost, MakesAttentionOfFactsWhereNobodyMeasuredIt) {
  const LibraryWork work = causal_work();
  const double moved = work.bytes / 1e12, computed = work.flops / 1e15, pairs = 8.0 * 4096 * 2048;
  EXPECT_NEAR(seconds_with(Param::AttendsVector, 0), 10e-6 + moved + computed, 1e-9);
  // Half of the peak, and as many clocks beside it: the longer side of a right angle.
  EXPECT_NEAR(seconds_with(Param::AttendsVector, computed / pairs * 100 * 1e9),
              10e-6 + moved + computed * std::sqrt(2), 1e-9);
  // 256 blocks of 128 queries, 10000 clocks each, on 100 SMs.
  EXPECT_NEAR(seconds_with(Param::AttendsBlock, 10000), 10e-6 + moved + computed + 25.6e-6, 1e-9);
  EXPECT_LT(seconds_with(Param::SmCount, 200), seconds_with(Param::AttendsVector, 0) + 1e-12);
}

TEST(LibraryCost, LetsMemoryAloneBoundDecoding) {
  // 64 sequences of one query with 8 heads, each with 4096 keys and values of its own.
  LibraryWork work = causal_work();
  work.flops = 4 * 64 * 8.0 * 4096 * 128;
  work.bytes = 4 * 64 * 8.0 * 4096 * 128;
  Machine machine = machine_of_facts();
  machine.set(Param::AttendsFew, {100, 0, ParameterClass::Assumed, "", ""});
  const double decoding = 10e-6 + work.bytes / 1e12;
  EXPECT_NEAR(to_seconds(answer(machine, library_cost, work).alone), decoding, 1e-9);
  for (const Param rate :
       {Param::LibraryAttentionForwardRate64, Param::LibraryAttentionForwardRate128}) {
    machine.set(rate, {1e15, 0, ParameterClass::Assumed, "", ""});
  }
  machine.set(Param::LibraryAttentionForwardBase, {1e-6, 0, ParameterClass::Assumed, "", ""});
  EXPECT_NEAR(to_seconds(answer(machine, library_cost, work).alone), decoding, 1e-9);
  const LibraryWork causal = causal_work();
  EXPECT_NEAR(to_seconds(answer(machine, library_cost, causal).alone), 1e-6 + causal.flops / 1e15,
              1e-9)
      << "the measured rate where more keys are looked at";
}

TEST(LibraryCost, FollowsTheClockAsFarAsTheMachineSays) {
  const Machine machine = machine_of({{Param::SmCount, 10},
                                      {Param::LibraryPointwiseBase, 0},
                                      {Param::LibraryPointwiseRate, 1e12},
                                      {Param::LibraryMemoryClock, 0.5}});
  const LibraryWork work{.kernel = KernelKind::Pointwise, .bytes = 1e6};
  EXPECT_EQ(answer(machine, library_cost, work).clock.share, 0.5);
}

TEST(LibraryCost, LosesClockByItsPowerBeyondWhatIsFree) {
  const Machine machine = machine_of({{Param::SmCount, 10},
                                      {Param::LibraryPointwiseBase, 0},
                                      {Param::LibraryPointwiseRate, 1e12},
                                      {Param::LibraryMemoryPower, 0.4},
                                      {Param::ProductsClockSlope, 0.5},
                                      {Param::ProductsFreeRandom, 0.6}});
  const KernelCost cost =
      answer(machine, library_cost, LibraryWork{.kernel = KernelKind::Pointwise, .bytes = 1e6});
  EXPECT_DOUBLE_EQ(cost.clock.lost, 0.5 * (0.4 - 0.6)) << "below the limit: room for others";
  EXPECT_TRUE(cost.clock.averages);
}

TEST(FrameworkTime, IsTheKindsTimeForEachCall) {
  const Machine machine = machine_of({{Param::EagerBackward, 7e-6}});
  EXPECT_EQ(answer(machine, framework_time, FrameworkCalls{FrameworkWork::Backward, 3, 1}), 21_us);
}

TEST(FrameworkTime, OfACaptureGrowsWithTheLoopsOfBothHostsByTheSamePower) {
  const Machine machine = machine_of(
      {{Param::EagerCaptured, 25e-9}, {Param::HostLoop, 24e-3}, {Param::HostLoopPower, 0.5}});
  const auto time = [&](std::uint32_t count, std::uint32_t loop_us) {
    return answer(machine, framework_time,
                  FrameworkCalls{FrameworkWork::Captured, count, 1, 0, loop_us});
  };
  EXPECT_EQ(time(4000, 24'000), 100_us);
  EXPECT_EQ(time(4000, 0), 100_us);
  // The same work on a host four times as quick: four times as many parts of its loop.
  EXPECT_EQ(time(16'000, 6'000), 200_us) << "and not four times as long";
}

}  // namespace
}  // namespace foretrace::cost
