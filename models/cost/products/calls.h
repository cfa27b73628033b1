// What the host pays for a product's call: the library prepares its kernels in different ways.
#pragma once

#include "models/cost/products/time.h"

namespace foretrace::products {

/// As a multiple of a call that launches one kernel of Hopper's (Family::Half), without the launch
/// of a second kernel. Kernels that nobody timed count as Hopper's. `waves`: of its tiles.
double call_share(Family family, const Shape& shape, const Plan& plan, std::int64_t waves);

}  // namespace foretrace::products
