// What cuBLAS chooses: a tile of the result for each block, and in how many parts k is split.
//
// The library has some sixty kernels of the nvjet family, some ten of each older one, and a model
// of its own to choose by. Here the choice is what this model finds fast, with a preference for
// each tile that is learned from recorded choices (taste.cc): a chance for each, as a logit. Of
// nvjet's the most likely one is right in two of three; what is predicted is the mean over all
// likely ones, since the others take a few percent more or less.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "models/cost/products/time.h"

namespace foretrace::products {

/// A kernel, and how much the library likes it beyond its time. The last three are a plan's.
struct Tile {
  std::int64_t m, n;
  bool cooperative;
  double liked;
  std::int64_t resident = 0;
  double slow = 1;
  bool padded = false;
};
/// How the library weighs what it knows of a plan, in this order:
///  - time: minus the logarithm of the time
///  - waves: minus the logarithm of the waves: large tiles are liked
///  - split: whether k is split at all
///  - parts: the logarithm of the parts
///  - orientation: a tall tile for a tall product
/// and of kernels with a block for each tile
///  - full: the logarithm of the tiles for each SM, beside the next whole number
///  - tiles: minus the logarithm of the tiles for each SM, from 1 up
///  - idle: the logarithm of the tiles for each SM, below 1
///  - inside: whether the blocks add the parts themselves
///  - inside_bytes: the logarithm of the size of such parts, in 16 MiB
constexpr std::size_t kTraits = 10;
using Traits = std::array<double, kTraits>;
struct Taste {
  std::vector<Tile> tiles;
  Traits weights;
};
/// Of the families whose taste is known; the others take whatever is fastest.
using Tastes = std::map<Family, Taste>;
/// As learned from reports/measured/products by `foretrace fit-products`.
const Tastes& recorded_tastes();

Traits traits(const Shape& shape, const Plan& plan, const Speeds& speeds);
/// The tile that computes this plan; none if the taste has none like it.
const Tile* tile_of(const Taste& taste, const Plan& plan);

struct Choice {
  Plan plan;
  double chance = 0;
};

/// Whether the tastes say what the library chooses for it. For float32 with a side below 32 they do
/// not: the library then takes tiles that are mostly empty, up to three times as long as others.
/// Half precision without whole 16 bytes has kernels for vectors.
bool is_known(const Shape& shape, const Tastes& tastes);

/// Every plan that a family with this taste has for this shape, tile by tile.
std::vector<Plan> plans_for(const Shape& shape, const Speeds& speeds, const Taste& taste);

/// The plans that get at least a fiftieth of the most likely one's chance, the most likely first;
/// the chances' sum is 1.
std::vector<Choice> likely_choices(const Shape& shape, const Speeds& speeds,
                                   const Tastes& tastes = recorded_tastes());

/// The (geometric) mean of the likely choices' times, in seconds.
double mean_time(const Shape& shape, const std::vector<Choice>& choices, const Speeds& speeds,
                 double clock, bool in_graph);

}  // namespace foretrace::products
