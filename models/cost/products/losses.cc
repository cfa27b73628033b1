#include "models/cost/products/losses.h"

#include <algorithm>
#include <cmath>

#include "models/cost/products/losses/recorded.h"
#include "models/cost/products/vector.h"

namespace foretrace::products {

LossTraits loss_traits(const Shape& shape, const Plan& plan, const Speeds& speeds) {
  Shape usual = shape;
  usual.cached = 1;
  usual.fresh = false;
  Plan plain = plan;
  plain.takes = 1;
  // Both rates as the library knows them: what a plan is beside others does not matter here.
  const Times known = time_of(usual, plain, library_speeds(family_of(shape), speeds.sms));
  const Traits traits = traits_of(usual, plain, known, known.total, speeds.sms);
  const Times times = time_of(usual, plain, speeds);
  LossTraits all{};
  std::ranges::copy(traits, all.begin());
  constexpr double kLeast = 1.0 / 256;
  const std::array parts{times.start,   times.arithmetic, times.operands,
                         times.results, times.memory,     times.split};
  std::ranges::transform(parts, all.begin() + kTraits, [&](double part) {
    return static_cast<float>(std::log2(std::max(kLeast, part / times.total)));
  });
  return all;
}

double loss_of(const LossTraits& traits, const std::vector<Network>& networks) {
  double sum = 0;
  for (const Network& network : networks) sum += network.value(traits);
  return networks.empty() ? 0 : sum / static_cast<double>(networks.size());
}

double takes(const Shape& shape, const Plan& plan, const Speeds& speeds) {
  constexpr double kMost = 0.47;     // log(1.6)
  constexpr double kLearned = 3e-3;  // s, the longest products of the lists
  const auto& networks = recorded_losses(family_of(shape));
  if (networks.empty()) return 1;
  const double loss =
      std::clamp(loss_of(loss_traits(shape, plan, speeds), networks), -kMost, kMost);
  const double seconds = time_of(shape, plan, speeds).total;
  return std::exp(loss * std::min(1.0, std::sqrt(kLearned / seconds)));
}

const std::vector<Network>& recorded_losses(Family family) {
  static const std::vector<Network> kNone;
  static const std::vector<Network> kHalf = recorded::half_losses();
  static const std::vector<Network> kPairs = recorded::half_pairs_losses();
  static const std::vector<Network> kOdd = recorded::odd_losses();
  static const std::vector<Network> kFloat32 = recorded::float32_losses();
  switch (family) {
    case Family::Half:
      return kHalf;
    case Family::HalfPairs:
      return kPairs;
    case Family::HalfOdd:
    case Family::BrainOdd:
      return kOdd;
    case Family::Float32:
      return kFloat32;
    default:
      return kNone;
  }
}

}  // namespace foretrace::products
