// What cuBLAS chooses: a tile of the result for each block, and in how many parts k is split.
//
// The library has some hundred kernels of the nvjet family, some ten of each older one. Every plan
// that they have for a shape (candidates.h) gets a chance by what the library was seen to like
// (heuristic.h). What is predicted is the mean over all likely ones.
#pragma once

#include <vector>

#include "models/cost/products/heuristic.h"

namespace foretrace::products {

struct Choice {
  Plan plan;
  double chance = 0;
};

/// The plans that get at least a fiftieth of the most likely one's chance, the most likely first;
/// the chances' sum is 1.
std::vector<Choice> likely_choices(const Shape& shape, const Speeds& speeds,
                                   const Heuristics& heuristics = recorded_heuristics());

/// The (geometric) mean of the likely choices' times, in seconds.
double mean_time(const Shape& shape, const std::vector<Choice>& choices, const Speeds& speeds,
                 double clock, bool in_graph);

}  // namespace foretrace::products
