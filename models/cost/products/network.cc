#include "models/cost/products/network.h"

#include <algorithm>
#include <array>
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

/// Of one row of weights: `sums` of the even and the odd places, and what is left over.
double total(Lanes sums, const float* weights, std::span<const double> in) {
  const double sum = sums[0] + sums[1];
  const std::size_t last = in.size() - 1;
  return in.size() % 2 == 0 ? sum : sum + static_cast<double>(weights[last]) * in[last];
}

/// Two products at a time, which compilers do not do by themselves: it changes the last digit. In
/// double, so that another libm's last digit is none of a prediction's.
double dot(const float* weights, std::span<const double> in) {
  Lanes sums{};
  for (std::size_t i = 0; i + 1 < in.size(); i += 2) sums += two(weights + i) * two(&in[i]);
  return total(sums, weights, in);
}

/// The same of four rows at once: a sum alone would wait for itself.
std::array<double, 4> four_dots(const float* weights, std::span<const double> in) {
  const float* const second = weights + in.size();
  const float* const third = second + in.size();
  const float* const fourth = third + in.size();
  Lanes a{}, b{}, c{}, d{};
  for (std::size_t i = 0; i + 1 < in.size(); i += 2) {
    const Lanes numbers = two(&in[i]);
    a += two(weights + i) * numbers;
    b += two(second + i) * numbers;
    c += two(third + i) * numbers;
    d += two(fourth + i) * numbers;
  }
  return {total(a, weights, in), total(b, second, in), total(c, third, in), total(d, fourth, in)};
}

/// Calls `take(row, dot)` for each row.
template <class Take>
void for_each_dot(const float* weights, std::size_t rows, std::span<const double> in,
                  const Take& take) {
  std::size_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    std::size_t at = row;
    for (const double sum : four_dots(weights + row * in.size(), in)) take(at++, sum);
  }
  for (; row < rows; ++row) take(row, dot(weights + row * in.size(), in));
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
  for_each_dot(all, first, scaled, [&](std::size_t row, double sum) {
    layer[row] = of_unit(unit, weight(first_offsets() + row) + sum);
  });
  double sum = weight(offset()) + dot(all + direct_weights(), scaled);
  for_each_dot(all + second_weights(), second, layer, [&](std::size_t row, double value) {
    sum += weight(sum_weights() + row) * of_unit(unit, weight(second_offsets() + row) + value);
  });
  return sum;
}

}  // namespace foretrace::products
