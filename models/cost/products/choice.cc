#include "models/cost/products/choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace foretrace::products {
namespace {

/// Tiles of the kernels outside the nvjet family, as their names have them.
constexpr std::array<std::array<std::int64_t, 2>, 11> kCommonTiles{{{256, 128},
                                                                    {128, 256},
                                                                    {128, 128},
                                                                    {128, 64},
                                                                    {64, 128},
                                                                    {256, 64},
                                                                    {64, 256},
                                                                    {64, 64},
                                                                    {64, 32},
                                                                    {32, 64},
                                                                    {32, 32}}};
constexpr std::array<std::int64_t, 11> kSplits{1, 2, 3, 4, 5, 6, 8, 11, 12, 16, 22};
constexpr std::array<std::int64_t, 15> kCommonSplits{1,  2,  3,  4,  5,  6,  8,  11,
                                                     12, 16, 22, 32, 44, 66, 132};

std::int64_t tiles_of(const Shape& shape, std::int64_t m, std::int64_t n) {
  return ((shape.m + m - 1) / m) * ((shape.n + n - 1) / n) * shape.batch;
}

/// Persistent kernels split what does not fill one wave.
void add_persistent(const Shape& shape, const Tile& tile, const Speeds& speeds,
                    std::vector<Plan>& plans) {
  constexpr std::int64_t kLeastDepth = 512;
  const std::int64_t tiles = tiles_of(shape, tile.m, tile.n);
  for (const std::int64_t split : kSplits) {
    if (split > 1 && (tiles * split > static_cast<std::int64_t>(speeds.sms) ||
                      shape.k < kLeastDepth * split || shape.batch > 1)) {
      break;
    }
    plans.push_back({tile.m, tile.n, tile.cooperative, split});
  }
}

/// Others are split into some parts, or into as many as fill the SMs a few times over.
std::vector<std::int64_t> splits_of(std::int64_t tiles, const Shape& shape, const Speeds& speeds) {
  constexpr std::int64_t kSome = 8;
  constexpr std::int64_t kMostTiles = 24;  // for each SM
  constexpr std::int64_t kLeastDepth = 2;
  const auto sms = static_cast<std::int64_t>(speeds.sms);
  std::vector<std::int64_t> splits;
  for (std::int64_t split = 2; split <= kSome && tiles * (split - 1) < kMostTiles * sms; ++split) {
    splits.push_back(split);
  }
  for (const std::int64_t times : {1, 2, 3, 4}) {
    if (const std::int64_t split = times * sms / tiles; split > kSome) splits.push_back(split);
  }
  std::erase_if(splits, [&](std::int64_t split) { return shape.k < kLeastDepth * split; });
  return splits;
}

/// The parts of a large result do not fit the workspace; blocks add those themselves.
void add_resident(const Shape& shape, const Tile& tile, const Speeds& speeds,
                  std::vector<Plan>& plans) {
  constexpr std::int64_t kWorkspace = 32 << 20;
  Plan plan{.tile_m = tile.m,
            .tile_n = tile.n,
            .cooperative = true,
            .resident = tile.resident,
            .slow = tile.slow,
            .padded = tile.padded};
  plans.push_back(plan);
  if (shape.batch > 1) return;
  for (const std::int64_t split : splits_of(tiles_of(shape, tile.m, tile.n), shape, speeds)) {
    plan.split = split;
    plan.inside = true;
    plans.push_back(plan);
    plan.inside = false;
    if (shape.m * shape.n * split * kPartBytes <= kWorkspace) plans.push_back(plan);
  }
}

/// What no product of this shape gets: of 74 in bfloat16 with an odd leading dimension and a side
/// of up to 16 (58 of reports/measured/products, 16 of cause_skinny_products) none got a tile below
/// 64x64, though one of 32x32 would be faster.
std::int64_t least_tile(const Shape& shape) {
  constexpr std::int64_t kFew = 16, kLeast = 64;
  const bool few = std::min(shape.m, shape.n) <= kFew;
  return few && family_of(shape) == Family::BrainOdd ? kLeast : 0;
}

/// Without a taste: any common tile and split, and the fastest of them. What float32 gets with a
/// side below 32 takes 1.4 times as long (median of 16 products in plain_*.csv and its like).
std::vector<Plan> common_plans(const Shape& shape, const Speeds& speeds) {
  constexpr std::int64_t kLeastDepth = 64;
  constexpr double kThinSlow = 1.4;
  constexpr std::int64_t kOfVectors = 32;
  const bool thin = shape.arithmetic == Arithmetic::Float32;
  if (family_of(shape) == Family::Vector) {  // blocks of so many results
    return {{.tile_m = std::min(shape.m, kOfVectors),
             .tile_n = std::min(shape.n, kOfVectors),
             .cooperative = true}};
  }
  const auto sms = static_cast<std::int64_t>(speeds.sms);
  std::vector<Plan> plans;
  for (const auto& [m, n] : kCommonTiles) {
    const std::int64_t tiles = tiles_of(shape, m, n);
    for (const std::int64_t split : kCommonSplits) {
      if (split > 1 &&
          (tiles * (split - 1) >= 2 * sms || shape.k < kLeastDepth * split || shape.batch > 1))
        break;
      plans.push_back({.tile_m = m,
                       .tile_n = n,
                       .cooperative = true,
                       .split = split,
                       .slow = thin ? kThinSlow : 1});
    }
  }
  return plans;
}

}  // namespace

Traits traits(const Shape& shape, const Plan& plan, const Speeds& speeds) {
  const Times times = time_of(shape, plan, speeds);
  const double parts = std::log(static_cast<double>(plan.split));
  const double tall = std::log(static_cast<double>(plan.tile_m) / static_cast<double>(plan.tile_n));
  const double shape_tall = std::log(static_cast<double>(shape.m) / static_cast<double>(shape.n));
  Traits known{-std::log(times.total), -std::log(static_cast<double>(times.waves)),
               plan.split > 1 ? 1.0 : 0.0, parts, tall * shape_tall};
  if (plan.resident == 0) return known;
  const double each = static_cast<double>(times.tiles) / speeds.sms;
  known[5] = each > 1 ? std::log(each / std::ceil(each)) : 0;
  known[6] = -std::log(std::max(1.0, each));
  known[7] = std::log(std::min(1.0, each));
  if (plan.inside) {
    constexpr double kTypical = 16 << 20;
    const auto elements = static_cast<double>(shape.m * shape.n * plan.split);
    known[8] = 1;
    known[9] = std::log(elements * kPartBytes / kTypical);
  }
  return known;
}

const Tile* tile_of(const Taste& taste, const Plan& plan) {
  constexpr double kAlike = 1.3;  // the same kernel may need a register more for transposed data
  for (const Tile& tile : taste.tiles) {
    if (tile.m != plan.tile_m || tile.n != plan.tile_n || tile.padded != plan.padded) continue;
    const auto mine = static_cast<double>(tile.resident);
    const auto other = static_cast<double>(plan.resident);
    if (mine <= kAlike * other && other <= kAlike * mine) return &tile;
  }
  return nullptr;
}

bool is_known(const Shape& shape, const Tastes& tastes) {
  const Family family = family_of(shape);
  if (family == Family::Half || !tastes.contains(family)) return tastes.contains(family);
  return std::min(shape.m, shape.n) >= (family == Family::Float32 ? 32 : 2);
}

std::vector<Plan> plans_for(const Shape& shape, const Speeds& speeds, const Taste& taste) {
  const std::int64_t least = least_tile(shape);
  std::vector<Plan> plans;
  for (const Tile& tile : taste.tiles) {
    if (std::max(tile.m, tile.n) < least) continue;
    if (tile.resident > 0) {
      add_resident(shape, tile, speeds, plans);
    } else {
      add_persistent(shape, tile, speeds, plans);
    }
  }
  return plans;
}

std::vector<Choice> likely_choices(const Shape& shape, const Speeds& speeds, const Tastes& tastes) {
  constexpr double kLeast = 0.02;
  std::vector<Choice> choices;
  if (!is_known(shape, tastes)) {
    const double weight = tastes.at(Family::Half).weights.front();
    for (const Plan& plan : common_plans(shape, speeds)) {
      choices.push_back({plan, -weight * std::log(time_of(shape, plan, speeds).total)});
    }
  } else {
    const Taste& taste = tastes.at(family_of(shape));
    for (const Plan& plan : plans_for(shape, speeds, taste)) {
      const Traits known = traits(shape, plan, speeds);
      const double liked = tile_of(taste, plan)->liked;
      choices.push_back(
          {plan, std::inner_product(known.begin(), known.end(), taste.weights.begin(), liked)});
    }
  }
  std::ranges::stable_sort(choices, std::ranges::greater{}, &Choice::chance);
  const double best = choices.front().chance;
  double sum = 0;
  for (Choice& choice : choices) {
    choice.chance = std::exp(choice.chance - best);
    if (choice.chance < kLeast) choice.chance = 0;
    sum += choice.chance;
  }
  std::erase_if(choices, [](const Choice& choice) { return choice.chance == 0; });
  for (Choice& choice : choices) choice.chance /= sum;
  return choices;
}

double mean_time(const Shape& shape, const std::vector<Choice>& choices, const Speeds& speeds,
                 double clock, bool in_graph) {
  double sum = 0;
  for (const Choice& choice : choices) {
    sum += choice.chance * std::log(time_of(shape, choice.plan, speeds, clock, in_graph).total);
  }
  return std::exp(sum);
}

}  // namespace foretrace::products
