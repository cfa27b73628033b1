// What kernels take alone: staircases and bandwidths, derived.
#include "models/cost/kernel_cost.h"

#include <gtest/gtest.h>

namespace foretrace {
namespace {

using namespace literals;

Machine machine_of(std::initializer_list<std::pair<Param, double>> values) {
  Machine machine;
  for (const auto& [param, value] : values) {
    machine.set(param, {value, 0, ParameterClass::Assumed, "", ""});
  }
  return machine;
}

TEST(SpinCost, RunsInWavesOfAllSms) {
  const Machine machine = machine_of({{Param::SmCount, 10}, {Param::SpinOverhead, 1e-6}});
  EXPECT_EQ(spin_cost(machine, 5_us, 4).alone, 6_us);
  EXPECT_EQ(spin_cost(machine, 5_us, 4).sms, 4u);
  EXPECT_EQ(spin_cost(machine, 5_us, 11).alone, 11_us) << "two waves";
  EXPECT_EQ(spin_cost(machine, 5_us, 11).sms, 10u);
}

TEST(GemmCost, IsAStaircaseOfTileWavesAndTakesTheBestTile) {
  // 4 SMs at 4e12 flop/s: 1e12 each. 256 x 256 x 1000 has 4 tiles of 128 x 128: one wave of
  // 2 * 128 * 128 * 1000 flops on each SM = 32.768 us. 384 x 256 has 6 tiles: two waves; half
  // tiles (12, three waves of half the work at 90 %) are better: 3 * 16.384 / 0.9 = 54.613 us.
  const Machine machine = machine_of({{Param::SmCount, 4},
                                      {Param::GemmBaseF32, 0},
                                      {Param::GemmRateF32, 4e12},
                                      {Param::GemmMediumF32, 0.9},
                                      {Param::GemmSmallF32, 0.1}});
  EXPECT_NEAR(to_us(gemm_cost(machine, DataType::Float32, 256, 256, 1000).alone), 32.768, 1e-3);
  EXPECT_NEAR(to_us(gemm_cost(machine, DataType::Float32, 384, 256, 1000).alone), 54.613, 1e-3);
}

TEST(ElementwiseCost, CountsEveryArrayAndLeavesTheCacheWhenTheyDoNotFit) {
  const Machine machine = machine_of({{Param::SmCount, 10},
                                      {Param::KernelBase, 1e-6},
                                      {Param::MemoryBase, 2e-6},
                                      {Param::L2Size, 1e6},
                                      {Param::UnaryCached, 1e12},
                                      {Param::UnaryBandwidth, 0.5e12}});
  // 0.4 MB read and written: 0.8 us in the cache. 1 MB: 2 MB at 0.5 TB/s = 4 us, 2 us more to
  // start.
  EXPECT_NEAR(to_us(elementwise_cost(machine, Bytes{400'000}, 1).alone), 1.8, 1e-6);
  EXPECT_NEAR(to_us(elementwise_cost(machine, Bytes{1'000'000}, 1).alone), 7.0, 1e-6);
}

}  // namespace
}  // namespace foretrace
