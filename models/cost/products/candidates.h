// The plans that a library's kernels have for a shape.
#pragma once

#include <vector>

#include "models/cost/products/heuristic.h"

namespace foretrace::products {

struct Candidate {
  Plan plan;
  std::size_t tile = 0;  ///< its place in the heuristic's tiles
  Traits traits{};
};

/// Those that a family with this heuristic has, as many as the library may think of: the ones that
/// are fastest by the heuristic's speeds on so many SMs.
std::vector<Candidate> candidates_of(const Shape& shape, const Heuristic& heuristic, double sms);

/// Without a heuristic: any common tile and split.
std::vector<Plan> common_plans(const Shape& shape, const Speeds& speeds);

/// k in so many parts counts as one of the numbers of parts that candidates have: the nearest.
std::int64_t known_split(std::int64_t split);

}  // namespace foretrace::products
