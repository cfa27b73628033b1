#include "models/cost/tiles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "models/cost/products/time.h"
#include "scenarios/program/product_type.h"

namespace foretrace::cost {
namespace {

struct BlockTile {
  double rows, columns;
};

// CUTLASS' and cuBLAS' tiles: one shape for each area and direction.
constexpr std::array<BlockTile, 19> kBlockTiles{{{256, 256},
                                                 {256, 128},
                                                 {128, 256},
                                                 {192, 128},
                                                 {128, 192},
                                                 {128, 128},
                                                 {256, 64},
                                                 {64, 256},
                                                 {128, 64},
                                                 {64, 128},
                                                 {64, 64},
                                                 {128, 32},
                                                 {32, 128},
                                                 {64, 32},
                                                 {32, 64},
                                                 {128, 16},
                                                 {16, 128},
                                                 {64, 16},
                                                 {16, 64}}};
constexpr std::array<double, 7> kSplits{1, 2, 3, 4, 6, 8, 16};
constexpr double kLeastPart = 256;  // of k
constexpr double kStep = 64;        // k goes in whole ones of these
constexpr double kPartBytes = 4;    // parts of k are float32

double bytes_of_operands(const TileShape& shape) {
  return shape.batch * shape.bytes * (shape.m * shape.k + shape.n * shape.k);
}

/// What memory has to bring and take: of what the level-2 cache still has, the part that does not
/// fit; weights that are cold entirely.
double memory_bytes(const TileShape& shape, const TileSpeeds& speeds) {
  const double weights = shape.batch * shape.bytes * shape.n * shape.k;
  const double result =
      shape.batch * shape.result_bytes * shape.m * shape.n * (shape.accumulates ? 2 : 1);
  const double room = speeds.cache_size * speeds.kept;
  if (shape.weights_cold) {
    const double others = shape.batch * shape.bytes * shape.m * shape.k + result;
    return weights + others * std::clamp(others / room, 0.0, 1.0);
  }
  const double all = bytes_of_operands(shape) + result;
  const double missing = std::clamp(all / room, 0.0, 1.0);
  return all * std::max(missing, 1 - shape.cached);
}

double norm_of(double a, double b, double c, double power) {
  const double most = std::max({a, b, c});
  if (!(most > 0)) return 0;
  return most *
         std::pow(std::pow(a / most, power) + std::pow(b / most, power) + std::pow(c / most, power),
                  1 / power);
}

}  // namespace

bool has_tiles(const Machine& machine) {
  return machine.has(Param::TilesShare) && machine.has(Param::GpuHalfFlops) &&
         machine.has(Param::GpuClock);
}

Param peak_of(DataType type, bool tf32) {
  switch (type) {
    case DataType::Float32:
      return tf32 ? Param::GpuTf32Flops : Param::GpuF32Flops;
    case DataType::Float8E4M3:
    case DataType::Float8E5M2:
      return Param::GpuF8Flops;
    case DataType::Float4E2M1:
      return Param::GpuF4Flops;
    case DataType::Float64:
      return Param::GpuF64Flops;
    case DataType::Int8:
      return Param::GpuInt8Flops;
    default:
      return Param::GpuHalfFlops;
  }
}

TileSpeeds read_tile_speeds(Reading& read, DataType type, bool tf32) {
  using enum Param;
  const double half = read.value(GpuHalfFlops);
  return {.sms = read.value(SmCount),
          .peak = read.rate(peak_of(type, tf32)),
          .per_watt = half / read.value(GpuPower),
          .memory = read.rate(HbmBandwidth),
          .cache_size = read.value(L2Size),
          .clock = read.value(GpuClock) * 1e6,
          .share = read.value(TilesShare),
          .power = read.value(TilesPower),
          .free = read.rate(TilesFree),
          .memory_share = read.value(TilesMemory),
          .cache = read.value(TilesCache),
          .kept = read.value(TilesKept),
          .edge = read.value(TilesEdge),
          .smooth = read.value(TilesSmooth),
          .in_flight = read.value(TilesInFlight),
          .norm = read.value(TilesNorm),
          .start = read.seconds(TilesStart),
          .wave = read.seconds(TilesWave),
          .sum = read.seconds(TilesSum)};
}

TileTime tile_time(const TileShape& shape, const TileSpeeds& speeds) {
  const double beyond = std::max(0.0, speeds.per_watt / speeds.free - 1);
  const double peak = speeds.peak * speeds.share / (1 + speeds.power * beyond) / speeds.sms;
  const double memory = speeds.memory * speeds.memory_share;
  const double cache = speeds.cache * speeds.clock;  // of an SM
  const double bytes = memory_bytes(shape, speeds);
  constexpr double kEdge = 64;  // rows or columns of a tile that loses `edge`
  TileTime best{.seconds = std::numeric_limits<double>::infinity()};
  for (const BlockTile& tile : kBlockTiles) {
    const double tiles =
        std::ceil(shape.m / tile.rows) * std::ceil(shape.n / tile.columns) * shape.batch;
    const double loss = 1 + speeds.edge * (kEdge / tile.rows + kEdge / tile.columns);
    for (const double split : kSplits) {
      if (split > 1 && shape.k / split < kLeastPart) break;
      const double depth = std::ceil(shape.k / split / kStep) * kStep;
      const double blocks = tiles * split, filled = blocks / speeds.sms;
      const double waves =
          std::max(1.0, std::ceil(filled) * (1 - speeds.smooth) + filled * speeds.smooth);
      const double arithmetic =
          waves * (2 * tile.rows * tile.columns * depth * loss / peak + speeds.wave);
      const double operands = waves * (tile.rows + tile.columns) * depth * shape.bytes / cache;
      const double share = std::min(1.0, speeds.in_flight * std::min(1.0, filled));
      const double in_waves = norm_of(arithmetic, operands, bytes / (memory * share), speeds.norm);
      const double sum = split > 1 ? speeds.sum + 2 * kPartBytes * split * shape.batch * shape.m *
                                                      shape.n / (cache * speeds.sms)
                                   : 0;
      const double seconds = speeds.start + in_waves + sum;
      if (seconds < best.seconds) best = {seconds, blocks, std::ceil(filled), in_waves};
    }
  }
  return best;
}

KernelCost by_facts(Reading& read, const Product& product) {
  const TileSpeeds speeds = read_tile_speeds(read, product.type, product.tf32);
  const TileShape shape{.m = static_cast<double>(product.m),
                        .n = static_cast<double>(product.n),
                        .k = static_cast<double>(product.k),
                        .batch = static_cast<double>(product.batch),
                        .bytes = bytes_each(product.type, product.scales),
                        .result_bytes = static_cast<double>(size_of(product.result).count),
                        .cached = product.cached_eighths / 8.0,
                        .weights_cold = false,
                        .accumulates = product.accumulates};
  const TileTime time = tile_time(shape, speeds);
  KernelCost cost;
  const Duration between = read.has(Param::KernelGap) ? read.time(Param::KernelGap) : Duration{0};
  const Duration alone = seconds_to_duration(time.seconds);
  cost.alone = product.in_graph ? alone : std::max(alone / 2, alone - between);
  cost.sms = static_cast<std::uint32_t>(std::clamp(time.blocks, 1.0, speeds.sms));
  constexpr double kMostBlocks = 1e6;  // beyond, single blocks do not matter
  if (time.blocks <= kMostBlocks) {
    cost.waves.blocks = static_cast<std::uint32_t>(time.blocks);
    cost.waves.block_time = seconds_to_duration(time.in_waves / time.waves);
  }
  cost.hbm_bytes_per_second = memory_bytes(shape, speeds) / time.seconds;
  // A GPU that multiplies for long loses of its clock, as those did that were measured.
  if (read.has(Param::ProductsClockSlope)) {
    const double used = 2 * shape.m * shape.n * shape.k * shape.batch / time.seconds;
    cost.clock.lost = products::lost_clock_at(read, used / speeds.peak, product.contents);
    cost.clock.averages = product.contents == products::Contents::Normal;
    cost.clock.share = 1;
  }
  return cost;
}

}  // namespace foretrace::cost
