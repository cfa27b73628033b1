#include "models/cost/products/choice.h"

#include <algorithm>
#include <cmath>

#include "models/cost/products/candidates.h"
#include "models/cost/products/losses.h"

namespace foretrace::products {

bool is_known(const Shape& shape, const Tastes& tastes) {
  return tastes.contains(family_of(shape));
}

std::vector<Choice> likely_choices(const Shape& shape, const Speeds& speeds, const Tastes& tastes) {
  constexpr double kLeast = 0.02;
  constexpr double kFastest = 27;  // how much a common plan's time decides
  std::vector<Choice> choices;
  const bool known = is_known(shape, tastes);
  if (known) {
    const Taste& taste = tastes.at(family_of(shape));
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
  for (Choice& choice : choices) {
    choice.chance /= sum;
    if (known) choice.plan.takes = takes(shape, choice.plan, speeds);
  }
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
