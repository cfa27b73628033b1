// Device memory of a product's matrices.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/products/shapes.h"

namespace foretrace::hw {

/// One operand: memory for so many of it as fit, used in turn.
class Operand {
 public:
  /// Throws CudaError.
  explicit Operand(std::size_t bytes);
  ~Operand();
  Operand(const Operand&) = delete;
  Operand& operator=(const Operand&) = delete;

  /// From now on it has `bytes`; `rotated`: successive slots are different memory, beyond L2.
  void use(std::size_t bytes, bool rotated);
  void* slot(std::size_t i) const { return static_cast<char*>(data_) + i % slots_ * step_; }
  void fill(cudaStream_t stream, Contents contents, ProductType type, std::uint32_t seed) const;

 private:
  void* data_{};
  std::size_t bytes_;
  std::size_t step_{};
  std::size_t slots_ = 1;
};

/// Bytes.
struct OperandSizes {
  std::size_t a{}, b{}, c{};
};

/// Enough for each of `shapes`.
OperandSizes largest_operands(const std::vector<Shape>& shapes, bool rotated);

}  // namespace foretrace::hw
