// How accurate a model is over many regions: the figures that decide whether anyone trusts it.
// Regions that the model learned from and true predictions are told apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reports/compare/compare.h"

namespace foretrace {

struct Accuracy {
  std::size_t regions{};      ///< with a figure on both sides
  std::size_t missing{};      ///< on one side only
  double median_abs_error{};  ///< of |error|
  double p95_abs_error{};
  double worst_abs_error{};
  double share_within{};  ///< |difference| <= max(15 %, 1.5 us, half the reference's p5-p95 spread)
};

enum class Regions : std::uint8_t {
  All,
  Prediction,
  Fit  ///< a parameter that decides them learned from them
};
Accuracy accuracy_of(std::span<const Comparison> comparisons, Regions which);

}  // namespace foretrace
