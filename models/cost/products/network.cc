#include "models/cost/products/network.h"

#include <algorithm>
#include <cmath>

namespace foretrace::products {
namespace {

float of_unit(Network::Unit unit, float value) {
  return unit == Network::Unit::Tanh ? std::tanh(value) : std::max(0.0F, value);
}

float dot(const float* weights, std::span<const float> in) {
  float sum = 0;
  for (std::size_t i = 0; i < in.size(); ++i) sum += weights[i] * in[i];
  return sum;
}

}  // namespace

double Network::value(std::span<const float> in) const {
  std::vector<float> hidden(inputs + first);
  const std::span<float> scaled{hidden.data(), inputs};
  const std::span<float> layer{hidden.data() + inputs, first};
  for (std::size_t i = 0; i < inputs; ++i) {
    const float held = least.empty() ? in[i] : std::clamp(in[i], least[i], most[i]);
    scaled[i] = (held - centre[i]) * scale[i];
  }
  const float* const all = weights.data();
  for (std::size_t row = 0; row < first; ++row) {
    layer[row] = of_unit(unit, all[first_offsets() + row] + dot(all + row * inputs, scaled));
  }
  float sum = all[offset()] + dot(all + direct_weights(), scaled);
  for (std::size_t row = 0; row < second; ++row) {
    const float value = dot(all + second_weights() + row * first, layer);
    sum += all[sum_weights() + row] * of_unit(unit, all[second_offsets() + row] + value);
  }
  return static_cast<double>(sum);
}

}  // namespace foretrace::products
