// What `foretrace fit-products --losses` wrote, a file for each kind of kernel.
#pragma once

#include <vector>

#include "models/cost/products/network.h"

namespace foretrace::products::recorded {

std::vector<Network> half_losses();
std::vector<Network> half_pairs_losses();
std::vector<Network> odd_losses();
std::vector<Network> float32_losses();

}  // namespace foretrace::products::recorded
