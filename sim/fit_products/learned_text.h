// What was learned as C++ text: models/cost/products/taste/*.cc and losses/*.cc.
#pragma once

#include <string>
#include <vector>

#include "models/cost/products/taste.h"

namespace foretrace::fit_products {

/// "half", as files and functions are called. Only of families that have a taste.
std::string name_of(products::Family family);

/// `by`: which options learned it.
std::string taste_file(const std::string& name, const products::Taste& taste,
                       const std::string& by);
std::string losses_file(const std::string& name, const std::vector<products::Network>& networks);

}  // namespace foretrace::fit_products
