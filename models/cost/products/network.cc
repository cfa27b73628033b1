#include "models/cost/products/network.h"

#include <algorithm>
#include <cmath>

namespace foretrace::products {
namespace {

double of_unit(Network::Unit unit, double value) {
  return unit == Network::Unit::Tanh ? std::tanh(value) : std::max(0.0, value);
}

using Lanes = double __attribute__((vector_size(2 * sizeof(double))));

Lanes two(const float* weights) {
  return Lanes{static_cast<double>(weights[0]), static_cast<double>(weights[1])};
}

Lanes two(const double* numbers) { return Lanes{numbers[0], numbers[1]}; }

/// Two products at a time, which compilers do not do by themselves: it changes the last digit. In
/// double, so that another libm's last digit is none of a prediction's.
double dot(const float* weights, std::span<const double> in) {
  Lanes sums{};
  for (std::size_t i = 0; i + 1 < in.size(); i += 2) sums += two(weights + i) * two(&in[i]);
  const double sum = sums[0] + sums[1];
  const std::size_t last = in.size() - 1;
  return in.size() % 2 == 0 ? sum : sum + static_cast<double>(weights[last]) * in[last];
}

}  // namespace

double Network::value(std::span<const float> in) const {
  std::vector<double> hidden(inputs + first);
  const std::span<double> scaled{hidden.data(), inputs};
  const std::span<double> layer{hidden.data() + inputs, first};
  for (std::size_t i = 0; i < inputs; ++i) {
    const float held = least.empty() ? in[i] : std::clamp(in[i], least[i], most[i]);
    scaled[i] = static_cast<double>(held - centre[i]) * static_cast<double>(scale[i]);
  }
  const float* const all = weights.data();
  const auto weight = [all](std::size_t at) { return static_cast<double>(all[at]); };
  for (std::size_t row = 0; row < first; ++row) {
    layer[row] = of_unit(unit, weight(first_offsets() + row) + dot(all + row * inputs, scaled));
  }
  double sum = weight(offset()) + dot(all + direct_weights(), scaled);
  for (std::size_t row = 0; row < second; ++row) {
    const double value = dot(all + second_weights() + row * first, layer);
    sum += weight(sum_weights() + row) * of_unit(unit, weight(second_offsets() + row) + value);
  }
  return sum;
}

}  // namespace foretrace::products
