#include "models/cost/kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace foretrace::cost {
namespace {

/// Output tiles as cuBLAS's kernels have them: a thread block computes one, an SM one at a time.
struct Tile {
  double rows, columns;
};

struct GemmParams {
  Param base, rate, medium, small;
  Tile large;
};

GemmParams gemm_params(DataType type) {
  using enum Param;
  switch (type) {
    case DataType::Float64:
      return {GemmBaseF64, GemmRateF64, GemmMediumF64, GemmSmallF64, {128, 128}};
    case DataType::Float16:
    case DataType::BFloat16:
      return {GemmBaseHalf, GemmRateHalf, GemmMediumHalf, GemmSmallHalf, {256, 128}};
    default:
      return {GemmBaseF32, GemmRateF32, GemmMediumF32, GemmSmallF32, {128, 128}};
  }
}

/// A kernel that `bytes` of memory traffic decide, on all SMs. In the level-2 cache it runs at
/// `cached`; beyond, at `memory` and after a longer start.
KernelCost memory_bound(Reading& read, Param base, double bytes, Param cached, Param memory) {
  const bool in_cache = bytes <= read.value(Param::L2Size);
  KernelCost cost;
  cost.alone = read.time(base) + seconds_to_duration(bytes / read.rate(in_cache ? cached : memory));
  if (!in_cache) cost.alone += read.time(Param::MemoryBase);
  cost.sms = read.count(Param::SmCount);
  cost.hbm_bytes_per_second = bytes / std::max(1e-12, to_seconds(cost.alone));
  return cost;
}

}  // namespace

KernelCost spin_cost(Reading& read, Duration duration, std::uint32_t blocks) {
  const std::uint32_t sms = read.count(Param::SmCount);
  const std::uint32_t waves = (blocks + sms - 1) / sms;
  const Duration alone = duration * waves + read.time(Param::SpinOverhead);
  return {alone, std::min(blocks, sms), 0, blocks, duration};
}

/// A product runs in waves of one tile per SM, so its time is a staircase; cuBLAS takes the tile
/// size that gives the shortest one. Smaller tiles reuse less data and are slower per flop.
KernelCost gemm_cost(Reading& read, DataType type, std::int64_t m, std::int64_t n, std::int64_t k) {
  const GemmParams params = gemm_params(type);
  const auto rows = static_cast<double>(m);
  const auto columns = static_cast<double>(n);
  const auto depth = static_cast<double>(k);
  const double sms = read.count(Param::SmCount);
  double best = std::numeric_limits<double>::infinity();
  double tiles_of_best = 1;
  double waves_of_best = 1;
  Tile tile = params.large;
  for (const double efficiency : {1.0, read.value(params.medium), read.value(params.small)}) {
    const double tiles = std::ceil(rows / tile.rows) * std::ceil(columns / tile.columns);
    const double waves = std::ceil(tiles / sms);
    const double flops_per_sm = waves * 2 * tile.rows * tile.columns * depth;
    const double seconds = flops_per_sm / (read.rate(params.rate) / sms * efficiency);
    if (seconds < best) {
      best = seconds;
      tiles_of_best = tiles;
      waves_of_best = waves;
    }
    (tile.rows > tile.columns ? tile.rows : tile.columns) /= 2;
  }
  KernelCost cost;
  cost.alone = read.time(params.base) + seconds_to_duration(best);
  cost.sms = static_cast<std::uint32_t>(std::clamp(tiles_of_best, 1.0, sms));
  constexpr double kMostBlocks = 1e6;  // beyond, single blocks do not matter
  if (tiles_of_best <= kMostBlocks) {
    cost.blocks = static_cast<std::uint32_t>(tiles_of_best);
    cost.block_time = seconds_to_duration(best / waves_of_best);
  }
  const bool half = type == DataType::Float16 || type == DataType::BFloat16;
  if (half && read.has(Param::GemmHalfPairLoss)) {
    cost.pair_loss = read.value(Param::GemmHalfPairLoss);
  }
  const double elements = rows * depth + depth * columns + rows * columns;
  cost.hbm_bytes_per_second =
      elements * static_cast<double>(size_of(type).count) / std::max(1e-12, to_seconds(cost.alone));
  return cost;
}

KernelCost elementwise_cost(Reading& read, Bytes size, std::uint32_t arrays_read) {
  using enum Param;
  const double bytes = static_cast<double>(size.count) * (arrays_read + 1);
  if (arrays_read == 0) return memory_bound(read, KernelBase, bytes, FillCached, FillBandwidth);
  if (arrays_read == 1) return memory_bound(read, KernelBase, bytes, UnaryCached, UnaryBandwidth);
  return memory_bound(read, KernelBase, bytes, BinaryCached, BinaryBandwidth);
}

KernelCost reduction_cost(Reading& read, Bytes size) {
  return memory_bound(read, Param::ReductionBase, static_cast<double>(size.count),
                      Param::ReductionBandwidth, Param::ReductionBandwidth);
}

KernelCost memset_cost(Reading& read, Bytes size) {
  return memory_bound(read, Param::KernelBase, static_cast<double>(size.count), Param::FillCached,
                      Param::MemsetBandwidth);
}

KernelCost host_memset_cost(Reading& read, Bytes size) {
  return {read.time(Param::KernelBase) + at_rate(size, read.rate(Param::D2hBandwidth)), 1, 0};
}

KernelCost device_copy_cost(Reading& read, Bytes size) {
  return memory_bound(read, Param::D2dLatency, 2 * static_cast<double>(size.count),
                      Param::UnaryCached, Param::D2dBandwidth);
}

}  // namespace foretrace::cost
