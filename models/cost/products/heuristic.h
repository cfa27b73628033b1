// cuBLAS' heuristic: of the plans that its kernels have for a shape, which one it takes.
//
// It is not published. What it chose for 190,000 products, TF32's and float64's among them, is
// (reports/measured/products/choices_h100.csv.xz), and a small network learned to rank a shape's
// plans as it does, by traits.h and by a bias of each tile.
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
  double bias;  ///< beyond what the network says, as a logit
  std::int64_t resident = 0;
  double slow = 1;  ///< as in Plan
  bool padded = false;
};

struct Heuristic {
  /// Those that times for the choice are taken from: one H200's when the network was learned,
  /// whatever the machine, since the library looks at shapes and SMs and not at clocks (H100s and
  /// H200s choose alike). Another value needs another network. `sms` is the machine's.
  Speeds speeds;
  std::vector<Tile> tiles;
  Network network;  ///< of traits_of()
};
/// Of the families whose heuristic is known; the others take whatever is fastest.
using Heuristics = std::map<Family, Heuristic>;
/// As learned by `foretrace fit-products --choices`: models/products/heuristic.
const Heuristics& recorded_heuristics();

}  // namespace foretrace::products
