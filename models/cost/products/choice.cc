#include "models/cost/products/choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

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

double liking(const Shape& shape, const Plan& plan, const Speeds& speeds, const Weights& weights,
              double liked) {
  const Times times = time_of(shape, plan, speeds);
  const double parts = std::log(static_cast<double>(plan.split));
  const double tall = std::log(static_cast<double>(plan.tile_m) / static_cast<double>(plan.tile_n));
  const double shape_tall = std::log(static_cast<double>(shape.m) / static_cast<double>(shape.n));
  return liked - weights.time * std::log(times.total) -
         weights.waves * std::log(static_cast<double>(times.waves)) +
         (plan.split > 1 ? weights.split : 0) + weights.parts * parts +
         weights.orientation * tall * shape_tall;
}

}  // namespace

std::vector<Plan> plans_for(const Shape& shape, Family family, const Speeds& speeds,
                            const Taste& taste) {
  const auto sms = static_cast<std::int64_t>(speeds.sms);
  std::vector<Plan> plans;
  if (family == Family::Half) {
    constexpr std::int64_t kLeastDepth = 512;
    for (const Tile& tile : taste.tiles) {
      const std::int64_t tiles = tiles_of(shape, tile.m, tile.n);
      for (const std::int64_t split : kSplits) {
        if (split > 1 && (tiles * split > sms || shape.k < kLeastDepth * split || shape.batch > 1))
          break;
        plans.push_back({tile.m, tile.n, tile.cooperative, split});
      }
    }
    return plans;
  }
  constexpr std::int64_t kLeastDepth = 64;
  for (const auto& [m, n] : kCommonTiles) {
    const std::int64_t tiles = tiles_of(shape, m, n);
    for (const std::int64_t split : kCommonSplits) {
      if (split > 1 &&
          (tiles * (split - 1) >= 2 * sms || shape.k < kLeastDepth * split || shape.batch > 1))
        break;
      plans.push_back({m, n, true, split});
    }
  }
  return plans;
}

std::vector<Choice> likely_choices(const Shape& shape, const Speeds& speeds, const Taste& taste) {
  constexpr double kLeast = 0.02;
  const Family family = family_of(shape);
  const Weights common{taste.weights.time, 0, 0, 0, 0};
  const Weights& weights = family == Family::Half ? taste.weights : common;
  const auto liked = [&](const Plan& plan) {
    if (family != Family::Half) return 0.0;
    const auto at = std::ranges::find_if(taste.tiles, [&](const Tile& tile) {
      return tile.m == plan.tile_m && tile.n == plan.tile_n;
    });
    return at->liked;
  };
  std::vector<Choice> choices;
  for (const Plan& plan : plans_for(shape, family, speeds, taste)) {
    choices.push_back({plan, liking(shape, plan, speeds, weights, liked(plan))});
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
