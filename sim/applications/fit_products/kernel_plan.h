// The plan that a kernel's name and launch tell.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "models/cost/products/heuristic.h"

namespace foretrace::fit_products {

struct Launch {
  std::string_view kernel;
  std::int64_t kernels = 1;  ///< that the product launches
  std::array<std::int64_t, 3> grid{1, 1, 1};
  std::array<std::int64_t, 2> cluster{1, 1};
  std::int64_t blocks_per_sm = 1;
};

/// None for kernels without tiles, and where the family's kernels are not modelled.
std::optional<products::Plan> plan_of(const products::Shape& shape, const Launch& launch);

/// The tile that computes this plan; none if the heuristic has none like it.
const products::Tile* tile_of(const products::Heuristic& heuristic, const products::Plan& plan);

}  // namespace foretrace::fit_products
