// What the library likes, learned from what it chose: Adam's steps on the logarithm of the chance
// that the network gives to the recorded plan.
#pragma once

#include <vector>

#include "models/cost/products/heuristic.h"
#include "sim/applications/fit_products/table.h"

namespace foretrace::fit_products {

struct Learned {
  products::Heuristic heuristic;
  std::size_t learned_from = 0, judged = 0;  ///< products
  std::size_t left_out = 0;                  ///< the recorded plan is none that the model thinks of
  double right = 0;  ///< of the judged ones: the share whose plan is the most likely one
  double off = 0;  ///< of the judged ones: mean |log| of that plan's time beside the recorded one's
};

/// The family's tiles are those that `choices` name more than a few times, as slow as `known` says.
/// A sixth of the products only judges. Needs some 13 KB of memory for each product.
Learned learn_heuristic(products::Family family, const std::vector<Recorded>& choices,
                        const products::Heuristic& known, double sms);

}  // namespace foretrace::fit_products
