// What kernels take alone: staircases and bandwidths, derived.
#include "models/cost/kernel.h"

#include <gtest/gtest.h>

#include <limits>
#include <span>
#include <vector>

#include "models/machine/machine.h"
#include "tests/models/cost/costed_machine.h"

namespace foretrace::cost {
namespace {

using namespace literals;

TEST(OverNvlink, TheSlowerOneOfBothPathsDecides) {
  const Machine machine = machine_of({{Param::NvlinkBandwidth, 100e9}});
  KernelCost cost;
  cost.alone = Duration{std::chrono::microseconds{100}};
  cost.hbm_bytes_per_second = 1e12;
  Reading read{machine};
  EXPECT_EQ(over_nvlink(read, cost, 0).alone, cost.alone);
  EXPECT_EQ(over_nvlink(read, cost, 7.4e6).alone, cost.alone) << "74 GB/s need just as long";
  const KernelCost longer = over_nvlink(read, cost, 14.8e6);
  EXPECT_NEAR(to_us(longer.alone), 200, 0.01);
  EXPECT_NEAR(longer.hbm_bytes_per_second, 0.5e12, 1e8) << "the same bytes in twice the time";
}

TEST(GemmCost, OfANodeOfAGraphHasAGraphsStart) {
  const Machine machine = load_machine("h100-nvswitch-8");
  Product product{.type = DataType::Float16, .m = 512, .n = 256, .k = 256};
  const double on_a_stream = to_us(answer(machine, gemm_cost, product).alone);
  product.in_graph = true;
  const double in_a_graph = to_us(answer(machine, gemm_cost, product).alone);
  const double start = 1e6 * (machine.get(Param::ProductsStart).value -
                              machine.get(Param::ProductsGraphStart).value);
  const double gap = 1e6 * machine.get(Param::KernelGap).value;
  // Within a seventh, since what was learned of the kernel stretches its start too.
  EXPECT_NEAR(on_a_stream + gap - in_a_graph + 0.5, start, start / 7);
}

KernelCost spun(const Machine& machine, std::uint32_t blocks, std::uint32_t of = 0,
                ScalesWith scales_with = ScalesWith::Nothing) {
  Spin spin;
  spin.blocks = blocks;
  spin.of = of;
  spin.scales_with = scales_with;
  return answer(machine, spin_cost, spin, Duration{5_us});
}

TEST(SpinCost, RunsInWavesOfAllSms) {
  const Machine machine = machine_of({{Param::SmCount, 10}, {Param::SpinOverhead, 1e-6}});
  EXPECT_EQ(spun(machine, 4).alone, 6_us);
  EXPECT_EQ(spun(machine, 4).sms, 4u);
  EXPECT_EQ(spun(machine, 11).alone, 11_us) << "two waves";
  EXPECT_EQ(spun(machine, 11).sms, 10u);
}

TEST(SpinCost, TakesTheSamePartOfAnotherGpu) {
  const Machine machine = machine_of({{Param::SmCount, 10}, {Param::SpinOverhead, 0}});
  EXPECT_EQ(spun(machine, 228, 304).alone, 5_us) << "three quarters of 304 SMs, one wave";
  EXPECT_EQ(spun(machine, 228, 304).sms, 7u);
  EXPECT_EQ(spun(machine, 1, 304).sms, 1u);
  EXPECT_EQ(spun(machine, 608, 304).alone, 10_us) << "two waves there, two here";
}

TEST(SpinCost, IsShorterByWhatAWhatIfMakesFaster) {
  Machine machine = machine_of({{Param::SmCount, 10}, {Param::SpinOverhead, 0}});
  machine.multiply_factor(ScalesWith::Gemm, 2);
  EXPECT_EQ(spun(machine, 1, 0, ScalesWith::Gemm).alone, 2500_ns);
  EXPECT_EQ(spun(machine, 1, 0, ScalesWith::Hbm).alone, 5_us);
  EXPECT_EQ(spun(machine, 1).alone, 5_us);
}

TEST(CachedEighths, AreThoseOfWhatIsReadAgainSoonEnough) {
  const Machine machine = machine_of({{Param::L2Size, 1e6}});
  const auto of = [&](double a, double b) {
    const std::vector<Pass> passes{{100e3, a}, {300e3, b}};
    Reading read{machine};
    return cached_eighths(read, passes);
  };
  EXPECT_EQ(of(0.5e6, 0.5e6), 8);
  EXPECT_EQ(of(0.5e6, 5e6), 2) << "three quarters of it are gone";
  EXPECT_EQ(of(5e6, 5e6), 0);
}

TEST(ElementwiseCost, CountsEveryArrayAndLeavesTheCacheWhenTheyDoNotFit) {
  const Machine machine = machine_of({{Param::SmCount, 10},
                                      {Param::KernelBase, 1e-6},
                                      {Param::MemoryBase, 2e-6},
                                      {Param::L2Size, 1e6},
                                      {Param::UnaryCached, 1e12},
                                      {Param::UnaryBandwidth, 0.5e12}});
  const auto us = [&](double bytes, double distance) {
    const std::vector<Pass> passes(2, Pass{bytes, distance});
    return to_us(answer(machine, elementwise_cost, std::span<const Pass>{passes}).alone);
  };
  // 0.4 MB read and written: 0.8 us in the cache, and 0.28 less 0.3 * 0.8 us as a small kernel of
  // several blocks. 5 MB: 10 MB at 0.5 TB/s = 20 us, 2 us more to start, and so for 1 MB.
  EXPECT_NEAR(us(0.4e6, 0.7e6), 1.84, 1e-6);
  EXPECT_NEAR(us(5e6, 50e6), 23.0, 1e-6);
  EXPECT_NEAR(us(1e6, 20e6), 7.0, 1e-6);
  // 0.4 MB that other kernels have evicted: 1.6 us, and 2 us more to start.
  EXPECT_NEAR(us(0.4e6, 50e6), 4.6, 1e-6);
  // Once and a half as far apart as the cache is large: gone = 1 - exp(-1.5 gone) is 0.583.
  EXPECT_NEAR(us(0.4e6, 1.5e6), 1.8 + 0.5828 * (0.8 + 2), 2e-3);
}

TEST(ElementwiseCost, OfSmallArraysIsShorterInOneLoadAndLongerInSeveralBlocks) {
  const Machine machine = load_machine("h200-nvswitch-8");
  const double base = 1e6 * machine.get(Param::KernelBase).value;
  const auto us = [&](double bytes) {
    const Pass pass{bytes, bytes};
    return to_us(answer(machine, elementwise_cost, std::vector{pass, pass}).alone);
  };
  EXPECT_NEAR(us(2048), 0.86 * base, 0.02);
  EXPECT_NEAR(us(12e3), 1.09 * base, 0.03);
  EXPECT_NEAR(us(100e3), 1.28 * base, 0.04);
  const double moving = 8e6 / machine.rate(Param::UnaryCached) * 1e6;
  EXPECT_NEAR(us(4e6), base + moving, 0.01) << "the data's time hides it";
}

TEST(ElementwiseCost, NeedsSmsEnoughForItsRateOnly) {
  const Machine machine = machine_of({{Param::SmCount, 100},
                                      {Param::KernelBase, 1e-6},
                                      {Param::MemoryBase, 0},
                                      {Param::L2Size, 1e6},
                                      {Param::UnaryCached, 8e12},
                                      {Param::UnaryBandwidth, 4e12},
                                      {Param::SmBandwidth, 100e9}});
  const auto enough = [&](double bytes, double distance) {
    const std::vector<Pass> passes(2, Pass{bytes, distance});
    return answer(machine, elementwise_cost, std::span<const Pass>{passes}).enough_sms;
  };
  EXPECT_EQ(enough(100e6, 1e9), 40U) << "4 TB/s at 100 GB/s each";
  EXPECT_EQ(enough(0.4e6, 0.5e6), 25U) << "it has 25 blocks; at 8 TB/s 80 SMs would be enough";
}

TEST(ElementwiseCost, OfOneArrayInPlaceFindsLittleOfItInTurn) {
  const Machine machine = machine_of({{Param::SmCount, 10},
                                      {Param::KernelBase, 0},
                                      {Param::MemoryBase, 0},
                                      {Param::L2Size, 10e6},
                                      {Param::UnaryCached, 1e12},
                                      {Param::UnaryBandwidth, 0.5e12}});
  const auto us = [&](double distance) {
    const std::vector<Pass> passes(2, Pass{20e6, distance});
    return to_us(answer(machine, elementwise_cost, std::span<const Pass>{passes}).alone);
  };
  // Twice the cache's size. With another array in between: gone = 1 - exp(-2 gone) is 0.797. Alone:
  // (0.87 x 2)^4 = 9.2 times, nearly all.
  EXPECT_NEAR(us(20e6 + 1), 40 * (1 + 0.797), 0.1);
  EXPECT_NEAR(us(20e6), 80, 0.1);
}

TEST(ReductionCost, OfWhatWasOnlyReadBeforeIsShorterWhereItsDataTakeNoTime) {
  const Machine machine = load_machine("h200-nvswitch-8");
  const double base = 1e6 * machine.get(Param::ReductionBase).value;
  const auto us = [&](double bytes, bool only_read) {
    Pass pass{bytes, bytes};
    pass.reread = only_read;
    return to_us(answer(machine, reduction_cost, pass).alone);
  };
  EXPECT_NEAR(us(1000, false), base, 0.01);
  EXPECT_NEAR(us(1000, true), 0.85 * base, 0.01);
  EXPECT_NEAR(us(4096, true), 0.9 * base, 0.01);
  constexpr double kBlocks = 256 * 16384;
  EXPECT_NEAR(us(kBlocks, true), base + kBlocks / machine.rate(Param::ReductionReread) * 1e6, 0.01);
}

TEST(ElementwiseCost, LetsOthersBeginBesideTheLastBlocksOfWhatTheCacheFeeds) {
  const Machine machine = machine_of({{Param::SmCount, 10},
                                      {Param::KernelBase, 1e-6},
                                      {Param::MemoryBase, 0},
                                      {Param::L2Size, 10e6},
                                      {Param::UnaryCached, 1e12},
                                      {Param::UnaryBandwidth, 0.5e12},
                                      {Param::SaturatedBlock, 10e-6}});
  const auto us = [&](double bytes, double distance) {
    const std::vector<Pass> passes(2, Pass{bytes, distance});
    return to_us(answer(machine, elementwise_cost, std::span<const Pass>{passes}).room.last_blocks);
  };
  EXPECT_NEAR(us(0.4e6, 0.8e6), 0.45, 1e-6) << "a quarter of 1.8 us";
  EXPECT_EQ(us(2e6, 4e6), 1) << "of 5 us";
  EXPECT_EQ(us(5e6, 500e6), 3) << "it waits for memory";
}

TEST(ElementwiseCost, OfOneArrayWaitsForPlacesOnceItHasMoreBlocksThanTheGpu) {
  const Machine machine = machine_of({{Param::SmCount, 100},
                                      {Param::KernelBase, 0},
                                      {Param::MemoryBase, 0},
                                      {Param::L2Size, 100e6},
                                      {Param::UnaryCached, 1e12},
                                      {Param::UnaryBandwidth, 1e12}});
  const auto us = [&](double bytes, double distance) {
    const std::vector<Pass> passes(2, Pass{bytes, distance});
    return to_us(answer(machine, elementwise_cost, std::span<const Pass>{passes}).alone);
  };
  // 100 SMs have 800 blocks of 16 KiB at once: 13.1 MB, of which 26.2 MB are moved.
  constexpr double kAtOnce = 800 * 16384;
  EXPECT_NEAR(us(kAtOnce, kAtOnce), 26.2144, 1e-3);
  EXPECT_NEAR(us(kAtOnce + 4, kAtOnce + 4), 27.2144, 1e-3) << "one more";
  EXPECT_NEAR(us(20e6, 1e12), 40, 1e-3) << "memory hides it";
}

TEST(DeviceCopyCost, HasASecondKernelForWhatIsNoWholePage) {
  const Machine machine = machine_of({{Param::SmCount, 10},
                                      {Param::KernelBase, 1e-6},
                                      {Param::KernelGap, 2e-6},
                                      {Param::MemoryBase, 0},
                                      {Param::D2dLatency, 0.5e-6},
                                      {Param::L2Size, 1e9},
                                      {Param::UnaryCached, 1e12}});
  const auto us = [&](std::uint64_t bytes) {
    const Pass pass{static_cast<double>(bytes), 0};
    return to_us(answer(machine, device_copy_cost, pass, pass).alone);
  };
  constexpr std::uint64_t kMiB = 1 << 20;
  EXPECT_EQ(device_copy_kernels({kMiB}), 1U);
  EXPECT_EQ(device_copy_kernels({kMiB - 4}), 1U) << "small ones have one in any case";
  EXPECT_EQ(device_copy_kernels({kMiB + 4}), 2U);
  EXPECT_NEAR(us(kMiB + 4) - us(kMiB), 3, 1e-4);
}

TEST(MemsetCost, OfHostMemoryGoesAcrossPcie) {
  // 1 us to start and 1 MB at 50 GB/s; one thread block does it.
  const Machine machine = machine_of({{Param::KernelBase, 1e-6}, {Param::D2hBandwidth, 50e9}});
  const KernelCost cost = answer(machine, host_memset_cost, Bytes{1'000'000});
  EXPECT_EQ(cost.alone, 21_us);
  EXPECT_EQ(cost.sms, 1U);
}

TEST(MemsetCost, OfFewBytesInAGraphWaitsAsOnAStreamOnceInARow) {
  // No kernel: 0.6 us. Kernels of a graph follow each other 0.25 us apart, this and they 1.25 us.
  const Machine machine = machine_of({{Param::SmCount, 10},
                                      {Param::KernelBase, 1e-6},
                                      {Param::KernelGap, 1.25e-6},
                                      {Param::GraphGap, 0.25e-6},
                                      {Param::MemoryBase, 0},
                                      {Param::L2Size, 1e9},
                                      {Param::FillCached, 1e15}});
  const auto us = [&](double bytes, MemsetIn place) {
    return to_us(answer(machine, memset_cost, Pass{bytes, bytes}, place).alone);
  };
  EXPECT_NEAR(us(4096, MemsetIn::Stream), 0.25, 1e-3);
  EXPECT_NEAR(us(4096, MemsetIn::Graph), 2.6, 1e-3);
  EXPECT_NEAR(us(4096, MemsetIn::GraphBehindSmall), 0.6, 1e-3);
  EXPECT_NEAR(us(4097, MemsetIn::Graph), 1.0, 1e-3) << "a kernel";
}

TEST(MissingBytes, AreAllOfThemWhereNothingWasThere) {
  const Machine machine = machine_of({{Param::L2Size, 1e6}});
  const double never = std::numeric_limits<double>::infinity();
  EXPECT_EQ(answer(machine, missing_bytes, Pass{.bytes = 1000, .distance = never}), 1000);
}

}  // namespace
}  // namespace foretrace::cost
