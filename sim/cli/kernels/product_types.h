// Element types of products as users of explain-kernel name them.
#pragma once

#include <string>
#include <string_view>

#include "models/cost/products/product.h"
#include "scenarios/program/ops.h"

namespace foretrace {

struct ProductType {
  std::string_view name;
  DataType type;
  products::Arithmetic arithmetic;
  Scales scales = Scales::Tensor;
};

/// Throws UsageError with a suggestion, or all names.
const ProductType& product_type(const std::string& name);

/// "4096x4096x64", as m, n and k. Throws UsageError.
void read_product_sizes(const std::string& text, products::Shape& shape);

}  // namespace foretrace
