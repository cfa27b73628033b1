// Products: what is chosen, and what a choice takes, derived from round numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "models/cost/products/choice.h"

namespace foretrace::products {
namespace {

/// Four SMs of 1 Tflop/s each; everything that a test does not look at takes no time.
Speeds four_sms() {
  constexpr double kNothing = 1e30;
  return {.sms = 4,
          .arithmetic = 4e12,
          .arithmetic_apart = 2e12,
          .operands = kNothing,
          .results = kNothing,
          .cache = kNothing,
          .cache_size = 1e6,
          .memory = kNothing,
          .split_rate = kNothing,
          .peak = 4e12};
}
double us(double seconds) { return seconds * 1e6; }

TEST(ProductTime, GoesInWavesOfOneTilePerSm) {
  // A tile of 128 x 128 and k = 640: 2 * 128 * 128 * 640 flop at 1 Tflop/s = 20.97 us.
  const Plan plan{128, 128, true};
  const Times one = time_of({.m = 256, .n = 256, .k = 640}, plan, four_sms());
  EXPECT_EQ(one.waves, 1);
  EXPECT_NEAR(us(one.total), 20.97, 0.01);
  const Times two = time_of({.m = 256, .n = 264, .k = 640}, plan, four_sms());
  EXPECT_EQ(two.tiles, 6);
  EXPECT_NEAR(us(two.total), 41.94, 0.01) << "one column more than four tiles: a second wave";
  const Times batch = time_of({.m = 128, .n = 128, .k = 640, .batch = 5}, plan, four_sms());
  EXPECT_EQ(batch.waves, 2) << "the tiles of all products of a batch share the waves";
}

TEST(ProductTime, CountsOperandsAndResultsOfEachTile) {
  // Operands: (128 + 128) x 64 elements of 2 bytes = 32,768 bytes at 1 GB/s and SM = 32.8 us.
  // Results: 128 x 128 of 2 bytes, the same; twice that when c is read too, and 4 bytes each.
  Speeds speeds = four_sms();
  speeds.operands = 4e9;
  speeds.results = 4e9;
  const Plan plan{128, 128, true};
  const Times plain = time_of({.m = 128, .n = 128, .k = 64}, plan, speeds);
  EXPECT_NEAR(us(plain.operands), 32.77, 0.01);
  EXPECT_NEAR(us(plain.results), 32.77, 0.01);
  const Times summed =
      time_of({.m = 128, .n = 128, .k = 64, .accumulates = true, .result_bytes = 4}, plan, speeds);
  EXPECT_NEAR(us(summed.results), 131.07, 0.01);
}

TEST(ProductTime, IsLongerForOperandsThatTheCacheHasNot) {
  Speeds speeds = four_sms();
  speeds.arithmetic = 1e12;
  speeds.memory = 1e9;
  const auto takes = [&](double cached, std::int64_t resident) {
    const Plan plan{.tile_m = 128, .tile_n = 128, .cooperative = true, .resident = resident};
    return us(time_of({.m = 128, .n = 64, .k = 128, .cached = cached}, plan, speeds).total);
  };
  const double warm = takes(1, 0);
  const double missing = us((128 * 128 + 128 * 64 + 128 * 64) * 2 / 1e9);
  EXPECT_NEAR(takes(0, 0), std::cbrt(std::pow(warm, 3) + std::pow(missing, 3)) + 0.5, 0.01);
  EXPECT_NEAR(takes(0.5, 0), std::cbrt(std::pow(warm, 3) + std::pow(missing / 2, 3)) + 0.25, 0.01);
  EXPECT_NEAR(takes(0, 1), std::hypot(takes(1, 1), missing) + 0.7, 0.5) << "an older kernel";
}

TEST(ProductTime, FallsStepByStepWithWhatTheCacheHas) {
  Speeds speeds = four_sms();
  speeds.arithmetic = 1e12;
  speeds.memory = 1e9;
  speeds.cache = 2e9;
  for (const std::int64_t resident : {0, 1}) {
    const Plan plan{.tile_m = 128, .tile_n = 128, .cooperative = true, .resident = resident};
    for (const double size : {1e4, 4.9e4, 6e4, 7e4, 1e5, 1e6}) {
      speeds.cache_size = size;
      double before = 1;
      for (int eighths = 0; eighths <= 8; ++eighths) {
        const double now =
            time_of({.m = 128, .n = 64, .k = 128, .cached = eighths / 8.0}, plan, speeds).total;
        EXPECT_LE(now, before) << size << ", " << eighths << " eighths";
        EXPECT_GE(now, eighths > 0 ? 0.8 * before : 0) << size << ", " << eighths << " eighths";
        before = now;
      }
    }
  }
}

TEST(ProductTime, OfOperandsThatNoCacheCouldHoldIsLongerByTheFirstWaitOnly) {
  Speeds speeds = four_sms();
  speeds.memory = 1e9;
  speeds.cache_size = 1e3;
  const Plan plan{128, 128, true};
  const double warm = time_of({.m = 128, .n = 128, .k = 640}, plan, speeds).total;
  const double cold = time_of({.m = 128, .n = 128, .k = 640, .cached = 0}, plan, speeds).total;
  EXPECT_NEAR(us(cold - warm), 0.5, 0.001);
}

TEST(ProductTime, IsLongerForOperandsThatBeginWithinASector) {
  // a: 136 rows of 2 bytes are 17 times 16 bytes, half as long again for 64 x 64; b: 64 are whole
  // sectors. 128 x 128 wait less: 2 * 64 * 64 / (128 * 128 + 64 * 64) = 0.4 of it.
  Speeds speeds = four_sms();
  speeds.operands = 4e9;
  const Shape odd{.m = 136, .n = 64, .k = 64};
  const Plan plan{64, 64, true};
  const double whole = time_of(odd, plan, speeds).operands;
  const double of_large = time_of(odd, {128, 128, true}, speeds).operands;
  speeds.straddle = 0.5;
  EXPECT_NEAR(time_of(odd, {128, 128, true}, speeds).operands / of_large, 1.1, 1e-9);
  EXPECT_NEAR(time_of(odd, plan, speeds).operands / whole, 1.25, 1e-9);
  const Shape even{.m = 144, .n = 64, .k = 64};
  EXPECT_NEAR(time_of(even, plan, speeds).operands / whole, 1, 1e-9);
  const Shape turned{.m = 136, .n = 136, .k = 64, .transposes_a = true, .transposes_b = true};
  EXPECT_NEAR(time_of(turned, plan, speeds).operands / whole, 3 * 1.25, 1e-9)
      << "three times the tiles; of a whole sectors, of b not";
}

TEST(ProductTime, IsLongerForATransposedAThatIsLoadedByElements) {
  Speeds speeds = four_sms();
  speeds.operands = 4e9;
  speeds.across = 0.4;
  const Plan plan{128, 128, true};
  const Shape plain{.m = 128, .n = 64, .k = 64};
  const Shape turned{.m = 128, .n = 64, .k = 64, .transposes_a = true};
  EXPECT_NEAR(time_of(turned, plan, speeds).operands / time_of(plain, plan, speeds).operands, 1.2,
              1e-9);
}

TEST(ProductTime, OfPartsOfKIsShorterAndPaysTheirSum) {
  // k in four parts on four SMs: a quarter of 83.9 us, and 3 us + 4 x 128 x 128 x 4 bytes at
  // 0.1 TB/s = 2.6 us for the sum.
  Speeds speeds = four_sms();
  speeds.split_start = 3e-6;
  speeds.split_rate = 1e11;
  const Shape shape{.m = 128, .n = 128, .k = 2560};
  EXPECT_NEAR(us(time_of(shape, {128, 128, true, 1}, speeds).total), 83.89, 0.01);
  EXPECT_NEAR(us(time_of(shape, {128, 128, true, 4}, speeds).total), 20.97 + 5.62, 0.01);
}

TEST(ProductTime, OfSeveralTilesOnAnSmEndsWithTheFullestSm) {
  // A part of k of 608 and 32 to fill the stages: a tile takes the 20.97 us of 640.
  Speeds speeds = four_sms();
  const Plan plan{.tile_m = 128, .tile_n = 128, .cooperative = true, .resident = 2};
  const auto of_tiles = [&](std::int64_t tiles) {
    return time_of({.m = 128 * tiles, .n = 128, .k = 608}, plan, speeds);
  };
  EXPECT_EQ(of_tiles(8).waves, 1);
  EXPECT_EQ(of_tiles(8).blocks, 4) << "an SM's two tiles count as one";
  EXPECT_NEAR(us(of_tiles(8).total), 2 * 20.97, 0.01);
  EXPECT_NEAR(us(of_tiles(9).total), 3 * 20.97, 0.01) << "one SM has a third tile";
  EXPECT_NEAR(of_tiles(9).last.share, 1.0 / 3, 1e-9) << "of the waves' time";
  EXPECT_EQ(of_tiles(9).last.fewer, 0) << "nobody has a tile less and yet one";
  EXPECT_EQ(of_tiles(13).last.fewer, 3);
  EXPECT_NEAR(of_tiles(13).last.share, 0.5, 1e-9);
  EXPECT_NEAR(of_tiles(13).last.fewer_share, 0.5, 1e-9) << "one tile beside two";
  speeds.residents = 1;
  EXPECT_NEAR(us(of_tiles(9).total), 4 * 20.97, 0.02) << "alone, at half the rate";
  EXPECT_NEAR(of_tiles(13).last.fewer_share, 1, 1e-9);
  Plan slow = plan;
  slow.slow = 1.5;
  EXPECT_NEAR(us(time_of({.m = 1024, .n = 128, .k = 608}, slow, speeds).total), 3 * 20.97, 0.01);
}

TEST(ProductTime, OfPaddedGridsHasTwoTilesOnAnSmWhileOthersAreIdle) {
  // Five rows of tiles are launched as eight: on six SMs, two of them have two blocks.
  Speeds speeds = four_sms();
  speeds.sms = 6;
  speeds.arithmetic = 6e12;
  Plan plan{.tile_m = 128, .tile_n = 128, .cooperative = true, .resident = 2};
  const Shape shape{.m = 640, .n = 128, .k = 608};
  EXPECT_NEAR(us(time_of(shape, plan, speeds).total), 20.97, 0.01);
  plan.padded = true;
  EXPECT_NEAR(us(time_of(shape, plan, speeds).total), 2 * 20.97, 0.01);
}

TEST(ProductTime, OfPartsThatBlocksAddTakesATurnForEach) {
  // k in four parts of 608 on four SMs, and 4 x 1.5 us.
  Speeds speeds = four_sms();
  speeds.split_turn = 1.5e-6;
  const Plan plan{
      .tile_m = 128, .tile_n = 128, .cooperative = true, .split = 4, .inside = true, .resident = 1};
  EXPECT_NEAR(us(time_of({.m = 128, .n = 128, .k = 2432}, plan, speeds).total), 20.97 + 6, 0.01);
}

TEST(ProductTime, IsBoundByMemoryWhenThatTakesLonger) {
  // 1024 x 64 and 64 x 1024 in, 1024 x 1024 out, 2 bytes each: 2.36 MB, well beyond a cache of
  // 0.1 MB, at 1 GB/s.
  Speeds speeds = four_sms();
  speeds.cache_size = 1e5;
  speeds.cache = 1e10;
  speeds.memory = 1e9;
  const Times times = time_of({.m = 1024, .n = 1024, .k = 64}, {128, 128, true}, speeds);
  EXPECT_NEAR(us(times.memory), 2359, 1);
  EXPECT_NEAR(us(times.total), 2359, 1);
}

TEST(ProductTime, IsLongerForOperandsThatWereWrittenLast) {
  // 3 us more, and none with 192 rows or fewer. A block for each tile: 3 / (1 + (t / 40)^4), so
  // half of it for one of 40 us.
  Speeds speeds = four_sms();
  speeds.fresh = 3e-6;
  const auto more = [&](std::int64_t m, std::int64_t k, std::int64_t resident) {
    const Plan plan{.tile_m = 128, .tile_n = 128, .cooperative = true, .resident = resident};
    Shape shape{.m = m, .n = 256, .k = k};
    const double read = time_of(shape, plan, speeds).total;
    shape.fresh = true;
    return us(time_of(shape, plan, speeds).total - read);
  };
  EXPECT_NEAR(more(256, 640, 0), 3, 1e-9);
  EXPECT_NEAR(more(256, 6400, 0), 3, 1e-9);
  // 2 * 128 * 128 * (1188.7 + 32) flop at 1 Tflop/s are 40 us.
  EXPECT_NEAR(more(256, 1189, 1), 1.5, 0.01);
  EXPECT_NEAR(more(256, 32, 1), 3, 0.01);
  EXPECT_EQ(more(192, 640, 1), 0);
  EXPECT_EQ(more(192, 640, 0), 0);
}

TEST(ProductTime, FollowsTheClockWhereSmsDecide) {
  Speeds speeds = four_sms();
  speeds.start = 2e-6;
  const Shape shape{.m = 256, .n = 256, .k = 640};
  EXPECT_NEAR(us(time_of(shape, {128, 128, true}, speeds, 0.8).total), 2 + 20.97 / 0.8, 0.01);
}

TEST(ProductTime, NeverFallsWhenKGrowsAndNeverRisesWithMoreSms) {
  const Plan plan{256, 128, true};
  double before = 0;
  for (std::int64_t k = 1; k < 20'000; k += 37) {
    const double now = time_of({.m = 3000, .n = 2000, .k = k}, plan, four_sms()).total;
    EXPECT_GE(now, before) << k;
    before = now;
  }
  before = 1e9;
  for (int sms = 1; sms < 200; ++sms) {
    Speeds speeds = four_sms();
    speeds.sms = sms;
    speeds.arithmetic = 1e12 * sms;
    const double now = time_of({.m = 3000, .n = 2000, .k = 640}, plan, speeds).total;
    EXPECT_LE(now, before * (1 + 1e-12)) << sms;
    before = now;
  }
}

TEST(ProductNetwork, IsASumOfUnitsBesideADirectSum) {
  // Inputs 3 and 2, less 1 and 0, by 1 and 2: 2 and 4. First layer: 2 + 4 - 1 = 5 and -4, cut to 0.
  // Second: 2 * 5 + 1 = 11. Sum: 11 / 2 + 10 * 2 - 4 + 0.5 = 22.
  Network network{.inputs = 2,
                  .first = 2,
                  .second = 1,
                  .unit = Network::Unit::Rectified,
                  .least = {},
                  .most = {},
                  .centre = {1, 0},
                  .scale = {1, 2},
                  .weights = {1, 1, 0, -1, -1, 0, 2, 7, 1, 0.5F, 10, -1, 0.5F}};
  EXPECT_EQ(network.size(), network.weights.size());
  const std::array<float, 2> in{3, 2};
  EXPECT_NEAR(network.value(in), 22, 1e-5);
  network.unit = Network::Unit::Tanh;
  const double first = 2 * std::tanh(5.0) + 7 * std::tanh(-4.0) + 1;
  EXPECT_NEAR(network.value(in), 0.5 * std::tanh(first) + 16.5, 1e-5);
}

TEST(ProductTime, IsAsMuchLongerAsThePlanTakes) {
  const Shape shape{.m = 256, .n = 256, .k = 640};
  Plan plan{128, 128, true};
  const double once = time_of(shape, plan, four_sms()).total;
  plan.residual = 1.25;
  EXPECT_NEAR(time_of(shape, plan, four_sms()).total, 1.25 * once, 1e-12);
}

TEST(ProductFamily, IsDecidedByLeadingDimensions) {
  // Column-major: those of a and c are m, that of b is k; transposed, k and n.
  EXPECT_EQ(family_of({.m = 2112, .n = 4779, .k = 2080}), Family::Half);
  EXPECT_EQ(family_of({.m = 2112, .n = 4779, .k = 2083}), Family::HalfOdd);
  EXPECT_EQ(family_of({.m = 2112, .n = 4779, .k = 2083, .is_bf16 = true}), Family::Bf16Odd);
  EXPECT_EQ(family_of({.m = 2112, .n = 4779, .k = 2082}), Family::HalfPairs);
  EXPECT_EQ(family_of({.m = 2112, .n = 4779, .k = 2080, .transposes_b = true}), Family::HalfOdd);
  EXPECT_EQ(family_of({.m = 4096, .n = 1, .k = 4096, .transposes_b = true}), Family::Half)
      << "a vector has no leading dimension";
  EXPECT_EQ(family_of({.m = 998, .n = 64, .k = 64, .arithmetic = Arithmetic::Tf32}),
            Family::Tf32Odd)
      << "998 float32 are no multiple of 16 bytes";
}

class H200 : public ::testing::Test {
 protected:
  double seconds(const Shape& shape, double clock = 1) {
    const Speeds speeds = read_speeds(read_, family_of(shape));
    return mean_time(shape, likely_choices(shape, speeds), speeds, clock, false);
  }
  Machine machine_ = load_machine("h200-nvswitch-8");
  Reading read_{machine_};
};

TEST_F(H200, TakesTheRecordedTileOfALargeProduct) {
  const Shape shape{.m = 3072, .n = 4096, .k = 4096, .transposes_a = true};
  const Speeds speeds = read_speeds(read_, Family::Half);
  const auto choices = likely_choices(shape, speeds);
  EXPECT_EQ(choices.front().plan.tile_m, 256);
  EXPECT_EQ(choices.front().plan.tile_n, 128);
  double sum = 0;
  for (const Choice& choice : choices) sum += choice.chance;
  EXPECT_NEAR(sum, 1, 1e-9);
}

TEST_F(H200, KnowsWhatFloat32GetsUnlessItIsAVector) {
  // An H200 took cutlass_80_simt_sgemm_256x128 for it.
  const Shape shape{.m = 3072, .n = 9216, .k = 512, .arithmetic = Arithmetic::Float32};
  EXPECT_TRUE(recorded_heuristics().contains(family_of(shape)));
  const auto choices = likely_choices(shape, read_speeds(read_, Family::Float32));
  EXPECT_EQ(choices.front().plan.tile_m, 256);
  EXPECT_EQ(choices.front().plan.tile_n, 128);
  EXPECT_EQ(choices.front().plan.split, 1);
  const Shape vector{.m = 1, .n = 4395, .k = 3968, .arithmetic = Arithmetic::Float32};
  EXPECT_FALSE(recorded_heuristics().contains(family_of(vector)));
  EXPECT_GT(seconds(vector), 10e-6);
}

TEST_F(H200, KnowsWhatDecodedTokensOfAnOddNumberGet) {
  // cutlass_75 64x64 with k in parts, 5 blocks on an SM: 11.0 us for 21 x 1600 x 1600 in a loop.
  const Shape shape{.m = 21, .n = 1600, .k = 1600, .is_bf16 = true};
  const auto choices = likely_choices(shape, read_speeds(read_, Family::Bf16Odd));
  EXPECT_EQ(choices.front().plan.tile_m, 64);
  EXPECT_EQ(choices.front().plan.tile_n, 64);
  EXPECT_EQ(choices.front().plan.resident, 5);
  EXPECT_GT(choices.front().plan.split, 4);
  EXPECT_NEAR(us(seconds(shape)), 11, 2.5);
  // An H200 took 61.6 us for it, an H100 54.6 us for 93 MB: elements one by one.
  const Shape vector{.m = 9536, .n = 1, .k = 5381, .is_bf16 = true};
  EXPECT_EQ(family_of(vector), Family::Vector);
  EXPECT_NEAR(us(seconds(vector)), 60, 4);
}

TEST_F(H200, TakesForAVectorWhatItsMatrixTakesToCome) {
  struct Timed {
    Shape shape;
    double us;  ///< of one in a row of such: reports/measured/products
  };
  const auto of = [](Arithmetic arithmetic, Shape shape) {
    shape.arithmetic = arithmetic;
    return shape;
  };
  using enum Arithmetic;
  const Timed timed[] = {
      {of(Float32, {.m = 1, .n = 2560, .k = 2560}), 5.9},    // from level 2
      {of(Float32, {.m = 4192, .n = 1, .k = 11007}), 48.1},  // from memory
      {of(Float32, {.m = 2032, .n = 1, .k = 16, .transposes_a = true}), 2.0},
      {of(Float32, {.m = 1, .n = 1536, .k = 1152, .transposes_b = true}), 13.6},  // in steps
      {of(Float32, {.m = 192, .n = 1, .k = 588}), 2.9},
      {of(Float64, {.m = 1, .n = 23808, .k = 1984, .transposes_a = true}), 95},
      {of(Float64, {.m = 1, .n = 16896, .k = 256, .transposes_a = true}), 6.6},
      {{.m = 1, .n = 8654, .k = 590, .is_bf16 = true}, 6.1}};
  for (const Timed& one : timed) {
    EXPECT_NEAR(us(seconds(one.shape)), one.us, one.us / 5)
        << one.shape.m << " x " << one.shape.n << " x " << one.shape.k;
  }
}

TEST_F(H200, SplitsALongKOfFewTiles) {
  const Speeds speeds = read_speeds(read_, Family::Half);
  EXPECT_GT(likely_choices({.m = 128, .n = 384, .k = 16384}, speeds).front().plan.split, 1);
  EXPECT_EQ(likely_choices({.m = 8192, .n = 8192, .k = 16384}, speeds).front().plan.split, 1);
}

TEST_F(H200, ComesNearItsRateWithSizeAndNearItsFloorWithout) {
  const Shape large{.m = 16384, .n = 16384, .k = 16384};
  const Shape larger{.m = 32768, .n = 32768, .k = 32768};
  const double rate = flops(large) / seconds(large);
  EXPECT_NEAR(flops(larger) / seconds(larger) / rate, 1, 0.08);
  EXPECT_LT(rate, read_.rate(Param::ProductsHalfPeak));
  EXPECT_GT(rate, 0.8 * read_.rate(Param::ProductsHalfPeak));
  EXPECT_NEAR(us(seconds({.m = 8, .n = 8, .k = 8})), us(read_.seconds(Param::ProductsStart)), 0.7);
}

TEST_F(H200, GetsASlowKernelForAnOddLeadingDimension) {
  EXPECT_GT(seconds({.m = 2112, .n = 4779, .k = 2083}),
            4 * seconds({.m = 2112, .n = 4779, .k = 2080}));
}

TEST_F(H200, LosesClockToRandomDataBeforeZerosAndNoneToSmallProducts) {
  const Shape large{.m = 8192, .n = 8192, .k = 8192};
  const Speeds speeds = read_speeds(read_, Family::Half);
  const double random = lost_clock(read_, large, seconds(large), speeds, Contents::Random);
  const double zeros = lost_clock(read_, large, seconds(large), speeds, Contents::Zeros);
  const double normal = lost_clock(read_, large, seconds(large), speeds, Contents::Normal);
  EXPECT_GT(random, zeros + 0.03);
  EXPECT_LT(random, 0.25);
  EXPECT_GT(normal, random + 0.1) << "as in a training step";
  EXPECT_LT(normal, 0.45);
  const Shape small{.m = 512, .n = 512, .k = 512};
  EXPECT_LT(lost_clock(read_, small, seconds(small), speeds, Contents::Random), 0.001);
}

}  // namespace
}  // namespace foretrace::products
