#include "hw/products/operand.h"

#include <algorithm>

#include "hw/cuda/cuda_check.h"
#include "hw/cuda/kernels.h"

namespace foretrace::hw {
namespace {

/// Rotated operands span more than any L2 there is (H200: 50 MiB, B200: 126 MiB).
constexpr std::size_t kRotatedBytes = std::size_t{512} << 20;
constexpr std::size_t kAlignment = 256;  // cudaMalloc's, which cuBLAS' choice depends on

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

Element element_of(ProductType type) {
  switch (type) {
    case ProductType::Float16:
      return Element::Float16;
    case ProductType::BFloat16:
      return Element::BFloat16;
    case ProductType::Float32:
    case ProductType::Tf32:
      return Element::Float32;
    case ProductType::Float64:
      return Element::Float64;
  }
  return Element::Float64;
}

}  // namespace

Operand::Operand(std::size_t bytes) : bytes_{bytes} { cuda_check(cudaMalloc(&data_, bytes)); }
Operand::~Operand() { cuda_ignore(cudaFree(data_)); }

void Operand::use(std::size_t bytes, bool rotated) {
  step_ = aligned(bytes);
  slots_ = rotated ? std::max<std::size_t>(1, std::min(bytes_, kRotatedBytes) / step_) : 1;
}

void Operand::fill(cudaStream_t stream, Contents contents, ProductType type,
                   std::uint32_t seed) const {
  const std::size_t bytes = slots_ * step_;
  cuda_check(contents == Contents::Zeros
                 ? cudaMemsetAsync(data_, 0, bytes, stream)
                 : launch_random_fill(stream, element_of(type), data_, bytes, seed));
}

OperandSizes largest_operands(const std::vector<Shape>& shapes, bool rotated) {
  const std::size_t least = rotated ? kRotatedBytes : kAlignment;
  OperandSizes sizes{least, least, least};
  for (const Shape& shape : shapes) {
    sizes.a = std::max(sizes.a, aligned(shape.a_bytes()));
    sizes.b = std::max(sizes.b, aligned(shape.b_bytes()));
    sizes.c = std::max(sizes.c, aligned(shape.c_bytes()));
  }
  return sizes;
}

}  // namespace foretrace::hw
