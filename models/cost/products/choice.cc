#include "models/cost/products/choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "models/constants/constants.h"
#include "models/cost/products/candidates.h"
#include "models/cost/products/residual.h"

namespace foretrace::products {

namespace {

/// The plans in the order of their chances, without what the machine makes of them.
std::vector<Choice> ranked(const Shape& shape, const Speeds& speeds, const Heuristics& heuristics) {
  constexpr double kLeast = 0.02;
  static const double kSharpness = constant("gemm.common_plan_sharpness");
  std::vector<Choice> choices;
  if (heuristics.contains(speeds.family)) {
    const Heuristic& heuristic = heuristics.at(speeds.family);
    for (const Candidate& one : candidates_of(shape, heuristic, speeds.sms)) {
      const double bias = heuristic.tiles[one.tile].bias + heuristic.network.value(one.traits);
      choices.push_back({one.plan, bias});
    }
  } else {
    for (const Plan& plan : common_plans(shape, speeds)) {
      choices.push_back({plan, -kSharpness * std::log(time_of(shape, plan, speeds).total)});
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

/// Where nothing is known of kernels, a library takes what is fastest by the facts.
Choice fastest(const Shape& shape, const Speeds& speeds) {
  Choice best{.plan = {}, .chance = 1};
  double least = std::numeric_limits<double>::infinity();
  for (const Plan& plan : common_plans(shape, speeds)) {
    const double seconds = time_of(shape, plan, speeds).total;
    if (seconds >= least) continue;
    least = seconds;
    best.plan = plan;
  }
  return best;
}

/// The same of a recorded heuristic, remembered: every layer of every process asks for the same
/// shapes.
const std::vector<Choice>& remembered(const Shape& shape, const Speeds& speeds) {
  constexpr std::size_t kMost = 10'000;
  thread_local std::map<std::pair<Shape, double>, std::vector<Choice>> known;
  const std::pair question{shape, speeds.sms};
  const auto found = known.find(question);
  if (found != known.end()) return found->second;
  if (known.size() >= kMost) known.clear();
  return known[question] = ranked(shape, speeds, recorded_heuristics());
}

}  // namespace

std::vector<Choice> likely_choices(const Shape& shape, const Speeds& speeds,
                                   const Heuristics& heuristics) {
  if (speeds.family == Family::Unmeasured) return {fastest(shape, speeds)};
  const bool known = heuristics.contains(speeds.family);
  const bool recorded = known && &heuristics == &recorded_heuristics();
  Shape asked = shape;  // the library does not know what the cache has
  asked.cached = 1;
  asked.fresh = false;
  std::vector<Choice> choices =
      recorded ? remembered(asked, speeds) : ranked(asked, speeds, heuristics);
  if (!known || !speeds.takes(Term::Residual)) return choices;
  for (Choice& choice : choices) choice.plan.residual = residual_factor(shape, choice.plan, speeds);
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
