#include "models/cost/products/candidates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace foretrace::products {
namespace {

/// CUTLASS' and cuBLAS' tiles: first those of measured kernels outside the nvjet family, as their
/// names have them; from the second on, one shape for each area and direction.
constexpr std::array<std::array<std::int64_t, 2>, 20> kCommonTiles{
    {{32, 32},  {256, 128}, {128, 256}, {128, 128}, {128, 64},  {64, 128},  {256, 64},
     {64, 256}, {64, 64},   {64, 32},   {32, 64},   {256, 256}, {192, 128}, {128, 192},
     {128, 32}, {32, 128},  {128, 16},  {16, 128},  {64, 16},   {16, 64}}};
constexpr std::size_t kNamedTiles = 11;
constexpr std::array<std::int64_t, 15> kCommonSplits{1,  2,  3,  4,  5,  6,  8,  11,
                                                     12, 16, 22, 32, 44, 66, 132};
constexpr std::array<std::int64_t, 7> kFewSplits{1, 2, 3, 4, 6, 8, 16};
/// All up to 24, then a tenth apart: up to a part for each SM of a Hopper GPU.
constexpr std::array<std::int64_t, 41> kSplits{
    1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18,  19,  20, 21,
    22, 23, 24, 27, 30, 33, 36, 40, 44, 49, 54, 60, 66, 73, 80, 88, 97, 107, 118, 132};

std::int64_t tiles_of(const Shape& shape, std::int64_t m, std::int64_t n) {
  return parts(shape.m, m) * parts(shape.n, n) * shape.batch;
}

struct Timed {
  Plan plan;
  std::size_t tile;
  Times times;
};

/// Every plan of one kernel, with its times.
void add_plans(const Shape& shape, const Tile& tile, std::size_t at, const Speeds& speeds,
               std::vector<Timed>& all) {
  constexpr std::int64_t kDepth = 64;      // nvjet walks k in such steps
  constexpr std::int64_t kLeastDepth = 2;  // of a part, in older kernels
  constexpr std::int64_t kMostTiles = 24;  // for each SM, in parts
  constexpr std::int64_t kWorkspace = 32 << 20;
  constexpr std::int64_t kMostPersistent = 24;
  const auto sms = static_cast<std::int64_t>(speeds.sms);
  const std::int64_t tiles = tiles_of(shape, tile.m, tile.n);
  Plan plan{.tile_m = tile.m,
            .tile_n = tile.n,
            .cooperative = tile.cooperative,
            .resident = tile.resident,
            .padded = tile.padded};
  const auto add = [&] {
    const Times times = time_of(shape, plan, speeds);
    all.push_back({plan, at, times});
    all.back().plan.slow = tile.slow;
  };
  add();
  if (shape.batch > 1) return;
  for (std::size_t i = 1; i < kSplits.size(); ++i) {
    plan.split = kSplits[i];
    plan.inside = false;
    if (tile.resident == 0) {  // persistent blocks: what does not fill one wave
      if (plan.split > kMostPersistent || tiles * plan.split > sms ||
          shape.k < kDepth * plan.split) {
        return;
      }
      add();
      continue;
    }
    if (tiles * (plan.split - 1) >= kMostTiles * sms || shape.k < kLeastDepth * plan.split) return;
    // The parts of a large result do not fit the workspace; blocks add those themselves.
    if (shape.m * shape.n * plan.split * kPartBytes <= kWorkspace) add();
    plan.inside = true;
    add();
  }
}

}  // namespace

std::vector<Candidate> candidates_of(const Shape& shape, const Heuristic& heuristic, double sms) {
  constexpr std::size_t kThoughtOf = 96;
  Speeds speeds = heuristic.speeds;
  speeds.sms = sms;
  std::vector<Timed> all;
  for (std::size_t i = 0; i < heuristic.tiles.size(); ++i) {
    add_plans(shape, heuristic.tiles[i], i, speeds, all);
  }
  const auto faster = [](const Timed& one, const Timed& other) {
    return one.times.total < other.times.total;
  };
  if (all.size() > kThoughtOf) {
    std::ranges::nth_element(all, all.begin() + kThoughtOf, faster);
    all.resize(kThoughtOf);
  }
  const double fastest = std::ranges::min_element(all, faster)->times.total;
  std::vector<Candidate> candidates;
  for (const Timed& one : all) {
    candidates.push_back({one.plan, one.tile, traits_of(shape, one.plan, one.times, fastest, sms)});
  }
  return candidates;
}

std::vector<Plan> common_plans(const Shape& shape, const Speeds& speeds) {
  constexpr std::int64_t kLeastDepth = 64;
  constexpr std::int64_t kLeastPart = 256;  // of k, where nothing is known of the kernels
  constexpr std::int64_t kOfVectors = 32;
  if (speeds.family == Family::Vector) {  // blocks of so many results
    return {{.tile_m = std::min(shape.m, kOfVectors),
             .tile_n = std::min(shape.n, kOfVectors),
             .cooperative = true}};
  }
  const auto sms = static_cast<std::int64_t>(speeds.sms);
  std::vector<Plan> plans;
  const auto add = [&](const auto& tile, std::int64_t split) {
    plans.push_back({.tile_m = tile[0], .tile_n = tile[1], .cooperative = true, .split = split});
  };
  if (speeds.family == Family::Unmeasured) {
    for (const auto& tile : std::span{kCommonTiles}.subspan<1>()) {
      for (const std::int64_t split : kFewSplits) {
        if (split > 1 && shape.k < kLeastPart * split) break;
        add(tile, split);
      }
    }
    return plans;
  }
  for (const auto& tile : std::span{kCommonTiles}.first<kNamedTiles>()) {
    const std::int64_t tiles = tiles_of(shape, tile[0], tile[1]);
    for (const std::int64_t split : kCommonSplits) {
      if (split > 1 &&
          (tiles * (split - 1) >= 2 * sms || shape.k < kLeastDepth * split || shape.batch > 1))
        break;
      add(tile, split);
    }
  }
  return plans;
}

std::int64_t known_split(std::int64_t split) {
  const auto apart = [split](std::int64_t known) {
    return std::abs(std::log(static_cast<double>(known) / static_cast<double>(split)));
  };
  return *std::ranges::min_element(kSplits, {}, apart);
}

}  // namespace foretrace::products
