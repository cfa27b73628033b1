// What the library likes, from what it chose: a multinomial logit, by Newton's method.
#pragma once

#include <vector>

#include "sim/fit_products/predict.h"

namespace foretrace::fit_products {

/// `taste` gives the tiles. Rows without a recorded plan, and plans that the model has not, are
/// left out.
products::Taste fit_taste(const Machine& machine, products::Family family,
                          const products::Taste& taste, const std::vector<Row>& rows);

/// A family's tiles: every one that was recorded, liked alike.
products::Taste recorded_tiles(products::Family family, const std::vector<Row>& rows);

}  // namespace foretrace::fit_products
