// What `foretrace fit-products --choices` wrote, a file for each family.
#pragma once

#include "models/cost/products/taste.h"

namespace foretrace::products::recorded {

Taste half();
Taste half_pairs();
Taste half_odd();
Taste brain_odd();
Taste float32();

}  // namespace foretrace::products::recorded
