// How accurate a model is over many regions: the figures that decide whether anyone trusts it.
// Regions of scenarios that the model was fitted on and true predictions are never mixed.
#pragma once

#include <cstddef>
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

/// Over the regions of those `comparisons` whose Comparison::fit is `fit`.
Accuracy accuracy_of(std::span<const Comparison> comparisons, bool fit);

}  // namespace foretrace
