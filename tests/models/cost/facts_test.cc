// Products of GPUs that only a datasheet tells of: numbers that are derived here, and what faster
// facts do.
#include "models/cost/products/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/cost/kernel.h"
#include "models/cost/products/choice.h"
#include "models/machine/machine.h"

namespace foretrace::products {
namespace {

constexpr double kNothing = 1e30;  // a rate at which nothing takes time

/// 100 SMs of 1 TFLOP/s.
GpuFacts plain_facts() {
  return {.sms = 100,
          .peak = 100e12,
          .per_watt = 0.5e12,
          .memory = kNothing,
          .cache_size = 1e9,
          .clock = 1e9};
}
/// All of the peak is reached; nothing but arithmetic takes time.
TileRatios plain_ratios() {
  return {.power = 1,
          .free = 1e12,
          .cache = kNothing,
          .sum = 1,
          .tiles = {.in_flight = 10, .kept = 1, .norm = 4}};
}
double seconds(const Shape& shape, const GpuFacts& facts, const TileRatios& ratios) {
  const Speeds speeds = speeds_of(facts, ratios);
  return time_of(shape, likely_choices(shape, speeds).front().plan, speeds).total;
}

TEST(Facts, TilesGoInWavesOfOneForEachSm) {
  // 10 x 10 tiles of 256 x 256 are one wave: 2 * 256 * 256 * 1024 flops at 1 TFLOP/s.
  const double one = 2 * 256.0 * 256 * 1024 / 1e12;
  const Shape shape{.m = 2560, .n = 2560, .k = 1024};
  EXPECT_NEAR(seconds(shape, plain_facts(), plain_ratios()), one, 1e-9);
  TileRatios ratios = plain_ratios();
  ratios.tiles.wave = 5e-6;
  EXPECT_NEAR(seconds(shape, plain_facts(), ratios), one + 5e-6, 1e-9);
}

TEST(Facts, ABoardWithLittlePowerReachesLessOfItsPeak) {
  const Shape shape{.m = 2560, .n = 1280, .k = 1024};
  GpuFacts facts = plain_facts();
  const double before = seconds(shape, facts, plain_ratios());
  facts.per_watt = 1.5e12;  // half a tiles.free beyond it, at a power of 1: 1.5 times as long
  EXPECT_NEAR(seconds(shape, facts, plain_ratios()), 1.5 * before, 1e-9);
}

TEST(Facts, PartOfAnUnfilledWaveIsNotLost) {
  // 110 tiles on 100 SMs: 2 waves; of the 0.9 that are unfilled half is not lost.
  const Shape shape{.m = 2560, .n = 1408, .k = 1024};
  Plan plan{.tile_m = 256, .tile_n = 128, .cooperative = true};
  TileRatios ratios = plain_ratios();
  const double lost = time_of(shape, plan, speeds_of(plain_facts(), ratios)).total;
  ratios.tiles.smooth = 0.5;
  EXPECT_NEAR(time_of(shape, plan, speeds_of(plain_facts(), ratios)).total / lost, 1.55 / 2, 1e-9);
}

TEST(Facts, ColdWeightsComeFromMemory) {
  GpuFacts facts = plain_facts();
  facts.memory = 1e12;
  const Shape shape{.m = 16384, .n = 1, .k = 8192, .cached = 0};
  EXPECT_NEAR(seconds(shape, facts, plain_ratios()), 2 * 16384.0 * 8192 / 1e12, 3e-6);
}

TEST(Facts, ALongKIsSplitWhereTilesAreFew) {
  const Shape shape{.m = 64, .n = 64, .k = 65536};
  TileRatios ratios = plain_ratios();
  const double whole = seconds(shape, plain_facts(), ratios);
  ratios.sum = 1e-6;
  EXPECT_LT(seconds(shape, plain_facts(), ratios), whole / 4);
}

TEST(Facts, FasterOnesAreNeverSlower) {
  const Machine machine = load_machine("8xL40S");
  Reading read{machine};
  const GpuFacts facts = read_gpu_facts(read, Arithmetic::Half);
  const TileRatios ratios = read_tile_ratios(read);
  for (const std::int64_t m : {1, 33, 512, 4096, 32768}) {
    for (const std::int64_t n : {32, 3072, 51200}) {
      for (const std::int64_t k : {64, 2560, 65536}) {
        const Shape shape{.m = m, .n = n, .k = k, .is_bf16 = true};
        const double now = seconds(shape, facts, ratios);
        for (const auto field :
             {&GpuFacts::peak, &GpuFacts::memory, &GpuFacts::clock, &GpuFacts::cache_size}) {
          GpuFacts faster = facts;
          faster.*field *= 1.3;
          EXPECT_LE(seconds(shape, faster, ratios), now * (1 + 1e-12)) << m << " " << n << " " << k;
        }
      }
    }
  }
}

double us_of(const char* name, const cost::Product& product) {
  const Machine machine = load_machine(name);
  Reading read{machine};
  return to_us(gemm_cost(read, product).alone);
}

TEST(Facts, AreOfMachinesWhoseProductsWereNotMeasured) {
  EXPECT_FALSE(load_machine("8xB200").has(Param::ProductsStart));
  EXPECT_TRUE(load_machine("8xH100-SXM").has(Param::ProductsStart)) << "measured";
  const cost::Product product{.type = DataType::BFloat16, .m = 8192, .n = 8192, .k = 8192};
  const double ratio = us_of("8xH100-SXM", product) / us_of("8xB200", product);
  EXPECT_GT(ratio, 1.6);
  EXPECT_LT(ratio, 2.3) << "2250 TFLOP/s against 989, and its power holds it back";
}

TEST(Facts, OfAMachineFileAreItsGpus) {
  const Machine v100 = load_machine("v100-pcie-4");
  EXPECT_EQ(v100.get(Param::GpuF32Flops).value, 14e12);
  EXPECT_EQ(v100.get(Param::GpuClock).value, 1380);
  const Machine gtx = load_machine("gtx-1050-ti");
  EXPECT_EQ(gtx.get(Param::GpuF32Flops).value, 2.1e12) << "not those of the V100 it is based on";
  // 2 * 4096^3 flops at 14 TFLOP/s take 9.8 ms.
  const cost::Product product{.type = DataType::Float32, .m = 4096, .n = 4096, .k = 4096};
  EXPECT_NEAR(us_of("v100-pcie-4", product), 9800 / 0.96, 500);
}

}  // namespace
}  // namespace foretrace::products
