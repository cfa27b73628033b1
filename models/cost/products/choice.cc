#include "models/cost/products/choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "models/cost/products/candidates.h"
#include "models/cost/products/losses.h"

namespace foretrace::products {

bool is_known(const Shape& shape, const Tastes& tastes) {
  return tastes.contains(family_of(shape));
}

namespace {

/// Small float32 products without transposes have k split however short it is, in up to so many
/// tiles of 64 x 64, by k. Of 1,150 such products in choices_h100.csv.gz and quick_h200.csv.gz nine
/// of ten are as this says. The network has not learned from them: among the fastest candidates
/// there are no such plans.
std::int64_t tiles_that_are_split(std::int64_t k) {
  struct Limit {
    std::int64_t k, tiles;
  };
  constexpr std::array kLimits{Limit{1, 0},    Limit{32, 48}, Limit{48, 20}, Limit{64, 12},
                               Limit{96, 8},   Limit{127, 6}, Limit{160, 4}, Limit{192, 3},
                               Limit{255, 12}, Limit{256, 32}};
  const auto* const limit = std::ranges::lower_bound(kLimits, k, {}, &Limit::k);
  return limit != kLimits.end() ? limit->tiles : 0;
}

/// Parts of 4 of k, of 32 where it is a multiple of that; of more than two tiles by more than 192
/// three, and four by 256.
Plan small_float32(std::int64_t tiles, std::int64_t k) {
  constexpr std::int64_t kLong = 192, kFew = 2, kThird = 85, kStep = 32, kShortest = 4;
  if (k > kLong && tiles > kFew) {
    return {.tile_m = 32, .tile_n = 32, .split = parts(k, kThird), .resident = 12};
  }
  const std::int64_t part = k % kStep == 0 ? kStep : kShortest;
  const std::int64_t split = std::max<std::int64_t>(2, parts(k, part));
  return {.tile_m = 64, .tile_n = 64, .split = split, .resident = 6, .padded = true};
}

/// The plan of a small product whose parts of k are summed by a kernel of its own where the network
/// says something else. In bfloat16 with an odd leading dimension a k of 64 is one part, and gets
/// that kernel all the same: 57 of 61 such products of up to 12 tiles.
std::optional<Plan> small_split(const Shape& shape) {
  constexpr std::int64_t kTile = 64, kBrainDepth = 64, kBrainTiles = 12;
  constexpr std::int64_t kNarrow = 32;  // products of fewer rows get other kernels
  if (shape.accumulates || std::min(shape.m, shape.n) <= kNarrow) return std::nullopt;
  const std::int64_t tiles = parts(shape.m, kTile) * parts(shape.n, kTile);
  const Family family = family_of(shape);
  if (family == Family::Float32 && tiles <= tiles_that_are_split(shape.k)) {
    return small_float32(tiles, shape.k);
  }
  if (family == Family::BrainOdd && shape.k == kBrainDepth && tiles <= kBrainTiles) {
    return Plan{.tile_m = kTile, .tile_n = kTile, .split = 2, .resident = 5, .padded = true};
  }
  return std::nullopt;
}

/// The plan of a product that is known without asking the network.
std::optional<Plan> known_plan(const Shape& shape, const Taste& taste) {
  if (shape.transposes_a || shape.transposes_b || shape.batch > 1) return std::nullopt;
  std::optional<Plan> plan = small_split(shape);
  if (!plan) return plan;
  plan->cooperative = true;
  const Tile* const tile = tile_of(taste, *plan);
  if (tile == nullptr) return std::nullopt;
  plan->slow = tile->slow;
  return plan;
}

/// The plans in the order of their chances, without what the machine makes of them.
std::vector<Choice> ranked(const Shape& shape, const Speeds& speeds, const Tastes& tastes) {
  constexpr double kLeast = 0.02;
  constexpr double kFastest = 27;  // how much a common plan's time decides
  std::vector<Choice> choices;
  if (is_known(shape, tastes)) {
    const Taste& taste = tastes.at(family_of(shape));
    const auto plan = speeds.takes(Term::SmallSplit) ? known_plan(shape, taste) : std::nullopt;
    if (plan) return {{*plan, 1}};
    for (const Candidate& one : candidates_of(shape, taste, speeds.sms)) {
      const double liked = taste.tiles[one.tile].liked + taste.network.value(one.traits);
      choices.push_back({one.plan, liked});
    }
  } else {
    for (const Plan& plan : common_plans(shape, speeds)) {
      choices.push_back({plan, -kFastest * std::log(time_of(shape, plan, speeds).total)});
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
  choices.shrink_to_fit();
  return choices;
}

/// The same of a recorded taste, remembered: every layer of every process asks for the same shapes.
const std::vector<Choice>& remembered(const Shape& shape, const Speeds& speeds) {
  using Question = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, Arithmetic,
                              bool, bool, bool, bool, std::uint32_t, double, bool>;
  constexpr std::size_t kMost = 10'000;
  thread_local std::map<Question, std::vector<Choice>> known;
  const Question question{shape.m,
                          shape.n,
                          shape.k,
                          shape.batch,
                          shape.arithmetic,
                          shape.transposes_a,
                          shape.transposes_b,
                          shape.accumulates,
                          shape.brain,
                          shape.result_bytes,
                          speeds.sms,
                          speeds.takes(Term::SmallSplit)};
  const auto found = known.find(question);
  if (found != known.end()) return found->second;
  if (known.size() >= kMost) known.clear();
  return known[question] = ranked(shape, speeds, recorded_tastes());
}

}  // namespace

std::vector<Choice> likely_choices(const Shape& shape, const Speeds& speeds, const Tastes& tastes) {
  const bool known = is_known(shape, tastes);
  const bool recorded = known && &tastes == &recorded_tastes();
  Shape asked = shape;  // the library does not know what the cache has
  asked.cached = 1;
  asked.fresh = false;
  std::vector<Choice> choices =
      recorded ? remembered(asked, speeds) : ranked(asked, speeds, tastes);
  if (!known || !speeds.takes(Term::Residual)) return choices;
  for (Choice& choice : choices) choice.plan.takes = takes(shape, choice.plan, speeds);
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
