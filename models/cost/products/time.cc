#include "models/cost/products/time.h"

#include <algorithm>
#include <cmath>

#include "models/constants/constants.h"
#include "models/cost/products/vector.h"

namespace foretrace::products {
namespace {

/// The larger of two, rounded where they are alike: two engines that wait for each other at times.
/// The sum of both where `power` is 1.
double overlapped(double a, double b, double power) {
  const double larger = std::max(a, b);
  if (larger <= 0) return 0;
  if (power == 1) return a + b;
  return larger * std::pow(1 + std::pow(std::min(a, b) / larger, power), 1 / power);
}

/// How far the operands are in the cache: 1 well below its size, 0 well above.
double cached_share(double bytes, double cache_size) {
  static const double kProducts = constant("gemm.cache_found");
  static const double kSharpness = constant("gemm.cache_sharpness");
  return 1 / (1 + std::pow(bytes / (kProducts * cache_size), kSharpness));
}

/// A row of 128 bytes that begins within a sector of 32 bytes is five sectors instead of four, and
/// of two cache lines. Small tiles wait for that; large ones load less for each operation, and
/// compute meanwhile.
double loads(std::int64_t leading, double element, const Plan& plan, const Speeds& speeds) {
  constexpr double kSector = 32;
  static const double kSmall = constant("gemm.straddle_area");
  const bool whole = std::fmod(static_cast<double>(leading) * element, kSector) == 0;
  if (whole) return 1;
  const auto area = static_cast<double>(plan.tile_m * plan.tile_n);
  return 1 + speeds.straddle * 2 * kSmall / (area + kSmall);
}

/// What memory takes of a GPU that only its facts tell of: for what the cache never had, and for
/// the part of the rest that it cannot keep, at the rate that the SMs with tiles ask for.
double memory_time(double bytes, double cached, std::int64_t tiles, const Speeds& speeds) {
  const double warm = bytes * cached;
  const double gone = std::min(1.0, warm / (speeds.tiles.kept * speeds.cache_size));
  const double filled = std::min(1.0, static_cast<double>(tiles) / speeds.sms);
  const double asked = speeds.tiles.in_flight * filled;
  return (bytes - warm + warm * gone) / (speeds.memory * std::min(1.0, asked));
}

/// CUTLASS' threadblock swizzle.
std::int64_t padded(std::int64_t rows) {
  const std::int64_t group = rows >= 6 ? 8 : rows >= 3 ? 4 : rows;
  return parts(rows, group) * group;
}

/// What was written last lies in one half of the level-2 cache, and the first to read it waits for
/// the other half.
double fresh_time(const Shape& shape, const Plan& plan, const Speeds& speeds, double seconds) {
  static const double kLong = constant("gemm.fresh.long");
  static const std::int64_t kFew = constant_count("gemm.fresh.few");
  if (!shape.fresh || std::min(shape.m, shape.n) <= kFew) return 0;
  if (!speeds.takes(Term::FreshOperands)) return 0;
  if (plan.resident == 0) return speeds.fresh;
  const double ratio = seconds / kLong;
  const double squared = ratio * ratio;
  return speeds.fresh / (1 + squared * squared);
}

/// What a product takes longer whose operands the level-2 cache could hold, but has not: it waits
/// for the first, and its loads go on in memory's time where that is longer than `warm`, what it
/// takes of the cache. `fits`: cached_share() of its bytes.
double cold_time(const Shape& shape, double bytes, const Plan& plan, const Speeds& speeds,
                 double fits, double warm) {
  static const double kFirst = constant("gemm.cold.first");
  static const double kFirstOfPairs = constant("gemm.cold.first_pairs");
  static const double kFirstOfOdd = constant("gemm.cold.first_odd");
  static const double kPower = constant("gemm.cold.power");
  static const double kPowerOfOlder = constant("gemm.cold.power_older");
  const bool odd = is_odd(speeds.family);
  const bool pairs = speeds.family == Family::HalfPairs;
  const double first = odd ? kFirstOfOdd : pairs ? kFirstOfPairs : kFirst;
  const double power = plan.resident > 0 ? kPowerOfOlder : kPower;
  const double missing = 1 - shape.cached;
  const double loads = missing * bytes / speeds.memory;
  const double both = std::pow(std::pow(warm, power) + std::pow(loads, power), 1 / power);
  return fits * (both - warm) + first * missing;
}

struct Waves {
  std::int64_t count = 0, blocks = 0;
  LastWave last{};
  /// That the fullest SM computes, at the rate of an SM that has all it can have.
  double tiles = 0;
};

/// Tiles go to the SM that has the fewest. With few of the blocks that it could have, an SM hides
/// less of its latencies.
Waves waves_of(std::int64_t tiles, std::int64_t rows, const Plan& plan, const Speeds& speeds) {
  const auto sms = static_cast<std::int64_t>(speeds.sms);
  const std::int64_t resident = std::max<std::int64_t>(1, plan.resident);
  const std::int64_t full = tiles / (sms * resident);
  const std::int64_t left = tiles - full * sms * resident;
  const auto all = static_cast<double>(resident);
  const auto tiles_at_once = [&](std::int64_t of_an_sm) {
    const auto some = static_cast<double>(of_an_sm);
    return some * std::pow(all / some, speeds.residents);
  };
  Waves waves{.count = full, .blocks = full * sms, .tiles = static_cast<double>(full) * all};
  double tiles_of_last = all;
  if (left > 0) {
    std::int64_t launched = left;
    if (plan.padded && full == 0) launched = tiles / rows * padded(rows);
    const std::int64_t fullest = std::min(parts(launched, sms), resident);
    tiles_of_last = tiles_at_once(fullest);
    waves.tiles += tiles_of_last;
    waves.blocks += std::min(left, sms);
    ++waves.count;
    if (fullest > 1 && launched == left && left % sms > 0) {
      waves.last.fewer = sms - left % sms;
      waves.last.fewer_share = tiles_at_once(fullest - 1) / tiles_of_last;
    }
  }
  if (resident > 1) waves.last.share = tiles_of_last / waves.tiles;
  const double filled = static_cast<double>(tiles) / speeds.sms;
  waves.tiles += speeds.tiles.smooth * std::min(0.0, std::max(1.0, filled) - waves.tiles);
  return waves;
}

}  // namespace

std::int64_t paired_tiles(const Shape& shape, const Plan& plan, double sms) {
  static const std::int64_t kMany = constant_count("gemm.pairs.many");
  const std::int64_t down = parts(shape.m, plan.tile_m);
  const std::int64_t across = parts(shape.n, plan.tile_n);
  const std::int64_t each = shape.batch * plan.split;
  const auto waves = [&](std::int64_t tiles) {
    return parts(tiles * each, static_cast<std::int64_t>(sms));
  };
  const auto in_pairs = [&](std::int64_t paired, std::int64_t others) {
    const std::int64_t tiles = parts(paired, 2) * 2 * others;
    const bool wastes_little = paired % 2 == 0 || paired >= kMany;
    return wastes_little && waves(tiles) == waves(paired * others) ? tiles : 0;
  };
  const std::int64_t along_m = in_pairs(down, across);
  const std::int64_t along_n = in_pairs(across, down);
  const bool tall = plan.tile_m > plan.tile_n;
  const std::int64_t first = tall ? along_n : along_m;
  const std::int64_t second = tall ? along_m : along_n;
  const std::int64_t paired = first > 0 ? first : second;
  return (paired > 0 ? paired : down * across) * each;
}

Times time_of(const Shape& shape, const Plan& plan, const Speeds& speeds, double clock,
              bool in_graph) {
  constexpr std::int64_t kDepth = 64;  // k is walked in steps of this by nvjet
  constexpr double kEdge = 64;         // rows or columns of a tile that loses tiles.edge
  static const double kOverlap = constant("gemm.overlap_power");
  static const std::int64_t kFill = constant_count("gemm.older_fill");
  Times times;
  times.tiles =
      parts(shape.m, plan.tile_m) * parts(shape.n, plan.tile_n) * shape.batch * plan.split;
  const Waves waves = waves_of(times.tiles, parts(shape.m, plan.tile_m), plan, speeds);
  times.waves = waves.count;
  times.blocks = waves.blocks;
  times.last = waves.last;
  const std::int64_t part = parts(shape.k, plan.split);
  const auto depth =
      static_cast<double>(plan.resident > 0 ? part + kFill : parts(part, kDepth) * kDepth);
  const auto rows = static_cast<double>(plan.tile_m);
  const auto columns = static_cast<double>(plan.tile_n);
  times.sizes = sizes_of(shape);
  const auto [element, result, bytes] = times.sizes;  // packed operands are whole in the SMs
  // All SMs' rates, and their clock.
  const double at_once = waves.tiles * speeds.sms / clock * plan.slow;
  const double lost = speeds.tiles.edge * (kEdge / rows + kEdge / columns);
  times.arithmetic = at_once * 2 * rows * columns * depth * (1 + lost) /
                         (plan.cooperative ? speeds.arithmetic : speeds.arithmetic_apart) +
                     waves.tiles * speeds.tiles.wave;
  const double turned = shape.transposes_a ? 1 + speeds.across : 1;
  const double loaded =
      rows * turned * loads(shape.transposes_a ? shape.k : shape.m, element, plan, speeds) +
      columns * loads(shape.transposes_b ? shape.n : shape.k, element, plan, speeds);
  times.operands = at_once * loaded * depth * element / speeds.operands;
  times.results = at_once * rows * columns * result * (shape.accumulates ? 2 : 1) / speeds.results;
  const bool by_facts = speeds.tiles.norm > 0;
  const double fits = by_facts ? 0 : cached_share(bytes, speeds.cache_size);
  times.memory = by_facts ? memory_time(bytes, shape.cached, times.tiles, speeds)
                          : bytes / (fits * speeds.cache + (1 - fits) * speeds.memory);
  times.start = in_graph ? speeds.graph_start : speeds.start;
  if (speeds.family == Family::Vector) {
    const double less = speeds.start - constant("vector.start");
    times.start -= std::max(0.0, std::min(times.start, less));
    times.arithmetic = times.operands = times.results = 0;
    times.memory = vector_time(shape, bytes, speeds, fits);
  } else if (plan.split > 1 && plan.inside) {
    times.split = speeds.split_turn * static_cast<double>(plan.split);
  } else if (plan.has_second_kernel()) {
    const double elements = static_cast<double>(shape.m) * static_cast<double>(shape.n);
    times.split = speeds.split_start +
                  elements * static_cast<double>(plan.split * kPartBytes) / speeds.split_rate;
  }
  for (double* one : {&times.start, &times.arithmetic, &times.operands, &times.results,
                      &times.memory, &times.split}) {
    *one *= plan.residual;
  }
  const double loads = times.operands + times.results;
  const double sms = overlapped(times.arithmetic, loads, by_facts ? speeds.tiles.norm : 1);
  if (shape.cached < 1 && !by_facts && speeds.takes(Term::ColdOperands)) {
    const double of_cache = overlapped(sms, bytes / speeds.cache * plan.residual, kOverlap);
    times.cold = cold_time(shape, bytes, plan, speeds, fits, of_cache);
  }
  const double power = by_facts ? speeds.tiles.norm : kOverlap;
  times.total = times.start + times.split + overlapped(sms, times.memory, power) + times.cold;
  const double fresh = fresh_time(shape, plan, speeds, times.total);
  times.start += fresh;
  times.total += fresh;
  return times;
}

double lost_clock(Reading& read, const Shape& shape, double rested_seconds, const Speeds& speeds,
                  Contents contents) {
  static const double kWidth = constant("gemm.clock.knee");
  static const double kMost = constant("gemm.clock.most_lost");
  const double used = flops(shape) / rested_seconds / speeds.peak;
  double power = 1;
  if (shape.arithmetic == Arithmetic::Tf32) power = read.value(Param::ProductsTf32Power);
  if (shape.arithmetic == Arithmetic::Float32) power = read.value(Param::ProductsF32Power);
  if (shape.arithmetic == Arithmetic::Float64) power = read.value(Param::ProductsF64Power);
  const double free = read.value(contents == Contents::Zeros ? Param::ProductsFreeZeros
                                                             : Param::ProductsFreeRandom);
  if (contents == Contents::Normal && read.has(Param::ProductsNormalPower)) {
    power *= read.value(Param::ProductsNormalPower);
  }
  const double beyond = (used * power - free) / kWidth;
  const double knee = beyond > 30 ? beyond : std::log1p(std::exp(beyond));
  return std::min(kMost, read.value(Param::ProductsClockSlope) * kWidth * knee);
}

}  // namespace foretrace::products
