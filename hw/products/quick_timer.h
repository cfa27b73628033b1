// How long products take, some hundred different ones in a second: a few in a row from zeros, and
// the clock right behind them. What a table of a few thousand products cannot tell, a list of a
// hundred thousand can: how kernels do on odd sizes.
#pragma once

#include <memory>
#include <vector>

#include "hw/products/captured_kernels.h"
#include "hw/products/product_call.h"
#include "hw/products/shapes.h"

namespace foretrace::hw {

struct QuickTime {
  double us = 0;  ///< from one product's begin to the next one's, the median of three timings
  bool in_graph = false;
  double sm_clock_mhz = 0;
};

class QuickTimer {
 public:
  /// Allocates operands of zeros for the largest of `shapes`. `rotated`: products in a row use
  /// different memory, of which the level-2 cache has nothing. Throws CannotHereError without the
  /// memory.
  QuickTimer(cudaStream_t stream, const ProductCublas& cublas, const std::vector<Shape>& shapes,
             bool rotated);
  ~QuickTimer();
  QuickTimer(const QuickTimer&) = delete;
  QuickTimer& operator=(const QuickTimer&) = delete;

  /// Throws ShapeError when cuBLAS refuses it, CudaError when the GPU failed.
  QuickTime time(const Shape& shape);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretrace::hw
