// Measures one product after the other on one GPU.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "hw/products/product_table.h"
#include "hw/products/shapes.h"

namespace foretrace::hw {

struct MeterOptions {
  int device = 0;
  double seconds_per_shape = 0.45;  ///< for all contents of a shape together
  double rest_ms = 25;              ///< idle before each load, so that it begins rested
  bool rotated = false;             ///< successive products use different memory, beyond L2
};

class ProductMeter {
 public:
  /// Allocates operands for the largest of `shapes`. Throws CannotHereError without the GPU or its
  /// memory.
  ProductMeter(const MeterOptions& options, const std::vector<Shape>& shapes);
  ~ProductMeter();
  ProductMeter(const ProductMeter&) = delete;
  ProductMeter& operator=(const ProductMeter&) = delete;

  const ProductRun& run() const;

  /// One row for each of `contents`. Throws ShapeError when cuBLAS refuses the shape,
  /// CudaError when the GPU failed.
  std::vector<ProductMeasurement> measure(const Shape& shape,
                                          const std::vector<Contents>& contents);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretrace::hw
