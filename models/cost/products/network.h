// A small network of two hidden layers, beside a direct sum of what goes in. What it knows was
// learned by `foretrace fit-products`; here it is only asked.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace foretrace::products {

struct Network {
  enum class Unit { Rectified, Tanh };

  std::size_t inputs = 0, first = 0, second = 0;
  Unit unit = Unit::Rectified;
  /// Where they are given, inputs are held between what was seen in learning.
  std::vector<float> least, most;
  /// Each input less `centre`, by `scale`.
  std::vector<float> centre, scale;
  /// One behind the other: the first layer's weights, row by row, and its offsets; the second's and
  /// its offsets; those of the sum; those of the direct sum; an offset.
  std::vector<float> weights;

  std::size_t first_offsets() const { return first * inputs; }
  std::size_t second_weights() const { return first_offsets() + first; }
  std::size_t second_offsets() const { return second_weights() + second * first; }
  std::size_t sum_weights() const { return second_offsets() + second; }
  std::size_t direct_weights() const { return sum_weights() + second; }
  std::size_t offset() const { return direct_weights() + inputs; }
  std::size_t size() const { return offset() + 1; }

  /// `in` has `inputs` numbers.
  double value(std::span<const float> in) const;
};

}  // namespace foretrace::products
