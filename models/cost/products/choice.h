// What cuBLAS chooses: a tile of the result for each block, and in how many parts k is split.
//
// The library has some sixty kernels of the nvjet family and a model of its own to choose by. Here
// the choice is what this model finds fast, with a preference for each tile that is learned from
// recorded choices (kTiles): a chance for each, as a logit. The most likely one is right in two of
// three; what is predicted is the mean over all likely ones, since the others take a few percent
// more or less.
#pragma once

#include <vector>

#include "models/cost/products/time.h"

namespace foretrace::products {

/// A kernel of the nvjet family, and how much the library likes it beyond its time.
struct Tile {
  std::int64_t m, n;
  bool cooperative;
  double liked;
};
/// How the library weighs what it knows.
struct Weights {
  double time;         ///< of minus the logarithm of the time
  double waves;        ///< of minus the logarithm of the waves: large tiles are liked
  double split;        ///< a product that is split at all
  double parts;        ///< of the logarithm of the parts
  double orientation;  ///< a tall tile for a tall product
};
struct Taste {
  std::vector<Tile> tiles;
  Weights weights;
};
/// As learned from reports/measured/products by `foretrace fit-products`.
const Taste& recorded_taste();

struct Choice {
  Plan plan;
  double chance = 0;
};

/// Every plan that the family has for this shape.
std::vector<Plan> plans_for(const Shape& shape, Family family, const Speeds& speeds,
                            const Taste& taste);

/// The plans that get at least a fiftieth of the most likely one's chance, the most likely first;
/// the chances' sum is 1.
std::vector<Choice> likely_choices(const Shape& shape, const Speeds& speeds,
                                   const Taste& taste = recorded_taste());

/// The (geometric) mean of the likely choices' times, in seconds.
double mean_time(const Shape& shape, const std::vector<Choice>& choices, const Speeds& speeds,
                 double clock, bool in_graph);

}  // namespace foretrace::products
