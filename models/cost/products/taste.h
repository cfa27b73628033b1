// What the library likes: of the plans that its kernels have for a shape, which one it takes.
//
// cuBLAS has a model of its own to choose by, which is not published. What it chose for 190,000
// products, TF32's and float64's among them, is (reports/measured/products/choices_h100.csv.gz),
// and a small network learned to rank a shape's plans as it does, by traits.h and by how much each
// tile is liked by itself.
#pragma once

#include <map>
#include <vector>

#include "models/cost/products/network.h"
#include "models/cost/products/traits.h"

namespace foretrace::products {

/// A kernel: its tile, and how many of them an SM has at once (0: it stays on its SM).
struct Tile {
  std::int64_t m, n;
  bool cooperative;
  double liked;  ///< beyond what the network says, as a logit
  std::int64_t resident = 0;
  double slow = 1;  ///< as in Plan
  bool padded = false;
};

struct Taste {
  std::vector<Tile> tiles;
  Network network;  ///< of traits_of()
};
/// Of the families whose taste is known; the others take whatever is fastest.
using Tastes = std::map<Family, Taste>;
/// As learned by `foretrace fit-products --choices` (taste/*.cc).
const Tastes& recorded_tastes();

/// The tile that computes this plan; none if the taste has none like it.
const Tile* tile_of(const Taste& taste, const Plan& plan);

}  // namespace foretrace::products
