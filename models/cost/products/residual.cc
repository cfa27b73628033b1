#include "models/cost/products/residual.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "models/cost/products/vector.h"
#include "models/products/learned.h"

namespace foretrace::products {
ResidualTraits residual_traits(const Shape& shape, const Plan& plan, const Speeds& speeds) {
  Shape usual = shape;
  usual.cached = 1;
  usual.fresh = false;
  Plan plain = plan;
  plain.residual = 1;
  // Both rates as the library knows them: what a plan is beside others does not matter here.
  Speeds of_choice = recorded_heuristics().at(speeds.family).speeds;
  of_choice.sms = speeds.sms;
  const Times known = time_of(usual, plain, of_choice);
  const Traits traits = traits_of(usual, plain, known, known.total, speeds.sms);
  const Times times = time_of(usual, plain, speeds);
  ResidualTraits all{};
  std::ranges::copy(traits, all.begin());
  constexpr double kLeast = 1.0 / 256;
  const std::array parts{times.start,   times.arithmetic, times.operands,
                         times.results, times.memory,     times.split};
  std::ranges::transform(parts, all.begin() + kTraits, [&](double part) {
    return static_cast<float>(std::log2(std::max(kLeast, part / times.total)));
  });
  return all;
}

double residual_of(const ResidualTraits& traits, const std::vector<Network>& networks) {
  double sum = 0;
  for (const Network& network : networks) sum += network.value(traits);
  return networks.empty() ? 0 : sum / static_cast<double>(networks.size());
}

double residual_factor(const Shape& shape, const Plan& plan, const Speeds& speeds) {
  const Residual& residual = recorded_residual(speeds.family);
  if (residual.networks.empty()) return 1;
  const double said =
      std::clamp(residual_of(residual_traits(shape, plan, speeds), residual.networks),
                 -residual.most, residual.most);
  const double seconds = time_of(shape, plan, speeds).total;
  return std::exp(said * std::min(1.0, std::sqrt(residual.longest / seconds)));
}

const Residual& recorded_residual(Family family) {
  static const std::map<Family, Residual> kAll = [] {
    constexpr std::array kNames{
        std::pair{Family::Half, "half"}, std::pair{Family::HalfPairs, "half_pairs"},
        std::pair{Family::HalfOdd, "odd"}, std::pair{Family::Bf16Odd, "odd"},
        std::pair{Family::Float32, "float32"}};
    std::map<Family, Residual> all;
    for (const auto& [known, name] : kNames) {
      all[known] = read_residual(learned_directory() / "residual" / (std::string{name} + ".json"));
    }
    return all;
  }();
  static const Residual kNone;
  const auto found = kAll.find(family);
  return found != kAll.end() ? found->second : kNone;
}

}  // namespace foretrace::products
