#include "models/cost/products/facts.h"

#include <algorithm>
#include <array>
#include <limits>

namespace foretrace::products {

using enum Param;

Param peak_of(Arithmetic arithmetic) {
  constexpr std::array kPeaks{GpuHalfFlops, GpuTf32Flops, GpuF32Flops, GpuF64Flops,
                              GpuF8Flops,   GpuF4Flops,   GpuInt8Flops};
  return kPeaks.at(static_cast<std::size_t>(arithmetic));
}

bool has_gpu_facts(const Machine& machine) {
  return machine.has(TilesShare) && machine.has(GpuHalfFlops) && machine.has(GpuClock);
}

GpuFacts read_gpu_facts(Reading& read, Arithmetic arithmetic) {
  constexpr double kHalf = 2;
  const double peak = read.rate(peak_of(arithmetic));
  const double half = read.rate(GpuHalfFlops);
  return {.sms = read.value(SmCount),
          .peak = peak,
          .fed = peak * element_bytes(arithmetic) / (half * kHalf),
          .per_watt = half / read.value(GpuPower),
          .memory = read.rate(HbmBandwidth),
          .cache_size = read.value(L2Size),
          .clock = read.value(GpuClock) * 1e6};
}

TileRatios read_tile_ratios(Reading& read) {
  return {.share = read.value(TilesShare),
          .power = read.value(TilesPower),
          .free = read.rate(TilesFree),
          .memory = read.value(TilesMemory),
          .cache = read.value(TilesCache),
          .start = read.seconds(TilesStart),
          .sum = read.seconds(TilesSum),
          .tiles = {.edge = read.value(TilesEdge),
                    .smooth = read.value(TilesSmooth),
                    .wave = read.seconds(TilesWave),
                    .in_flight = read.value(TilesInFlight),
                    .kept = read.value(TilesKept),
                    .norm = read.value(TilesNorm)}};
}

Speeds speeds_of(const GpuFacts& facts, const TileRatios& ratios) {
  const double beyond = std::max(0.0, facts.per_watt / ratios.free - 1);
  const double arithmetic = facts.peak * ratios.share / (1 + ratios.power * beyond);
  const double cache = ratios.cache * facts.clock * facts.sms;
  TileSpeeds tiles = ratios.tiles;
  tiles.edge *= std::min(1.0, facts.fed);
  return {.family = Family::Unmeasured,
          .sms = facts.sms,
          .start = ratios.start,
          .graph_start = ratios.start,
          .arithmetic = arithmetic,
          .arithmetic_apart = arithmetic,
          .operands = cache,
          .results = std::numeric_limits<double>::infinity(),
          .cache = cache,
          .cache_size = facts.cache_size,
          .memory = facts.memory * ratios.memory,
          .split_start = ratios.sum,
          .split_rate = cache / 2,  // parts are written and read
          .peak = facts.peak,
          .tiles = tiles};
}

}  // namespace foretrace::products
