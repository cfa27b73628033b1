#include "models/cost/products/residual.h"

#include <algorithm>
#include <cmath>

#include "models/cost/products/vector.h"
#include "models/products/learned.h"

namespace foretrace::products {
namespace {

/// Both rates as the library knows them: what a plan is beside others does not matter here.
Speeds speeds_of_choice(Family family, double sms) {
  Speeds speeds = recorded_heuristics().at(family).speeds;
  speeds.sms = sms;
  return speeds;
}

}  // namespace

ResidualTraits residual_traits(const Shape& shape, const Plan& plan, const Speeds& speeds) {
  Shape usual = shape;
  usual.cached = 1;
  usual.fresh = false;
  Plan plain = plan;
  plain.residual = 1;
  const Times known = time_of(usual, plain, speeds_of_choice(speeds.family, speeds.sms));
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
  const auto read = [](const char* name) {
    return read_residual(learned_directory() / "residual" / (std::string{name} + ".json"));
  };
  static const Residual kNone;
  static const Residual kHalf = read("half");
  static const Residual kPairs = read("half_pairs");
  static const Residual kOdd = read("odd");
  static const Residual kFloat32 = read("float32");
  switch (family) {
    case Family::Half:
      return kHalf;
    case Family::HalfPairs:
      return kPairs;
    case Family::HalfOdd:
    case Family::Bf16Odd:
      return kOdd;
    case Family::Float32:
      return kFloat32;
    default:
      return kNone;
  }
}

}  // namespace foretrace::products
