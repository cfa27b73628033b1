// Products of GPUs that only a datasheet tells of: numbers that are derived here, and what faster
// facts do.
#include "models/cost/tiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/machine/machine.h"

namespace foretrace::cost {
namespace {

/// 100 SMs of 1 TFLOP/s, of which all is reached; nothing but arithmetic takes time.
TileSpeeds plain_speeds() {
  return {.sms = 100,
          .peak = 100e12,
          .per_watt = 0.5e12,
          .memory = 1e18,
          .cache_size = 1e9,
          .clock = 1e9,
          .share = 1,
          .power = 1,
          .free = 1e12,
          .memory_share = 1,
          .cache = 1e9,
          .kept = 1,
          .edge = 0,
          .smooth = 0,
          .in_flight = 1,
          .norm = 4,
          .start = 0,
          .wave = 0,
          .sum = 1};
}

TEST(Tiles, GoInWavesOfOneForEachSm) {
  // 10 x 10 tiles of 256 x 256 are one wave: 2 * 256 * 256 * 1024 flops at 1 TFLOP/s.
  const double one = 2 * 256.0 * 256 * 1024 / 1e12;
  const TileTime full = tile_time({.m = 2560, .n = 2560, .k = 1024}, plain_speeds());
  EXPECT_NEAR(full.seconds, one, 1e-9);
  EXPECT_EQ(full.waves, 1);
  TileSpeeds speeds = plain_speeds();
  speeds.wave = 5e-6;
  EXPECT_NEAR(tile_time({.m = 2560, .n = 2560, .k = 1024}, speeds).seconds, one + 5e-6, 1e-9);
}

TEST(Tiles, ABoardWithLittlePowerReachesLessOfItsPeak) {
  TileSpeeds speeds = plain_speeds();
  const double before = tile_time({.m = 2560, .n = 2560, .k = 1024}, speeds).seconds;
  speeds.per_watt = 1.5e12;  // half a tiles.free beyond it, at a power of 1: 1.5 times as long
  EXPECT_NEAR(tile_time({.m = 2560, .n = 2560, .k = 1024}, speeds).seconds, 1.5 * before, 1e-9);
}

TEST(Tiles, FewRowsWaitForTheWeights) {
  TileSpeeds speeds = plain_speeds();
  speeds.memory = 1e12;
  speeds.in_flight = 10;
  const TileShape shape{.m = 1, .n = 16384, .k = 8192, .weights_cold = true};
  EXPECT_NEAR(tile_time(shape, speeds).seconds, 2 * 16384.0 * 8192 / 1e12, 3e-6);
}

TEST(Tiles, ALongKIsSplitWhereTilesAreFew) {
  TileSpeeds speeds = plain_speeds();
  const TileShape shape{.m = 64, .n = 64, .k = 65536};
  const double whole = tile_time(shape, speeds).seconds;
  speeds.sum = 1e-6;
  EXPECT_LT(tile_time(shape, speeds).seconds, whole / 4);
}

TEST(Tiles, FasterFactsAreNeverSlower) {
  const Machine machine = load_machine("8xL40S");
  Reading read{machine};
  const TileSpeeds speeds = read_tile_speeds(read, DataType::BFloat16);
  for (const double m : {1., 33., 512., 4096., 32768.}) {
    for (const double n : {32., 3072., 51200.}) {
      for (const double k : {64., 2560., 65536.}) {
        const TileShape shape{.m = m, .n = n, .k = k};
        const double now = tile_time(shape, speeds).seconds;
        for (const auto field : {&TileSpeeds::peak, &TileSpeeds::memory, &TileSpeeds::clock,
                                 &TileSpeeds::cache_size, &TileSpeeds::cache}) {
          TileSpeeds faster = speeds;
          faster.*field *= 1.3;
          EXPECT_LE(tile_time(shape, faster).seconds, now * (1 + 1e-12))
              << m << " " << n << " " << k;
        }
      }
    }
  }
}

TEST(Tiles, AreTheProductsOfAComposedMachineThatWasNotMeasured) {
  const Machine b200 = load_machine("8xB200"), h100 = load_machine("8xH100-SXM");
  EXPECT_TRUE(has_tiles(b200));
  EXPECT_FALSE(b200.has(Param::ProductsStart));
  EXPECT_TRUE(h100.has(Param::ProductsStart)) << "measured";
  Reading of_b200{b200}, of_h100{h100};
  const Product product{.type = DataType::BFloat16, .m = 8192, .n = 8192, .k = 8192};
  const double ratio =
      to_seconds(gemm_cost(of_h100, product).alone) / to_seconds(gemm_cost(of_b200, product).alone);
  EXPECT_GT(ratio, 1.6);
  EXPECT_LT(ratio, 2.3) << "2250 TFLOP/s against 989, and its power holds it back";
}

}  // namespace
}  // namespace foretrace::cost
