#include "models/cost/products/product.h"

#include <algorithm>
#include <array>

namespace foretrace::products {
namespace {

/// The largest power of two that divides every leading dimension, in bytes. A vector has none.
std::int64_t alignment(const Shape& shape) {
  constexpr std::int64_t kAny = 256;
  const std::int64_t bytes = element_bytes(shape.arithmetic);
  std::int64_t least = kAny;
  const auto add = [&](std::int64_t leading) {
    const std::int64_t size = leading * bytes;
    least = std::min(least, size & -size);
  };
  if (shape.transposes_a || shape.m > 1) add(shape.transposes_a ? shape.k : shape.m);
  if (!shape.transposes_b || shape.n > 1) add(shape.transposes_b ? shape.n : shape.k);
  if (shape.m > 1) add(shape.m);
  return least;
}

}  // namespace

Family family_of(const Shape& shape) {
  constexpr std::int64_t kTma = 16;
  switch (shape.arithmetic) {
    case Arithmetic::Float32:
      return std::min(shape.m, shape.n) == 1 ? Family::Vector : Family::Float32;
    case Arithmetic::Float64:
      return std::min(shape.m, shape.n) == 1 ? Family::Vector : Family::Float64;
    case Arithmetic::Tf32:
      if (alignment(shape) < kTma) return Family::Tf32Odd;
      return shape.transposes_b ? Family::Tf32Transposed : Family::Tf32;
    case Arithmetic::Float8:
    case Arithmetic::Float4:
    case Arithmetic::Int8:
      return Family::Unmeasured;
    case Arithmetic::Half:
      break;
  }
  const std::int64_t aligned = alignment(shape);
  if (aligned >= kTma) return Family::Half;
  if (std::min(shape.m, shape.n) == 1) return Family::Vector;
  if (aligned >= 4) return Family::HalfPairs;
  return shape.is_bf16 ? Family::Bf16Odd : Family::HalfOdd;
}

const char* kernel_name(Family family) {
  constexpr std::array kNames{"nvjet_sm90",
                              "cutlass_80 align2",
                              "cutlass_75 align1",
                              "cutlass_75 align1",
                              "sm90_xmma tf32",
                              "sm90_xmma tf32",
                              "cutlass_80 tf32 align1",
                              "sm80_xmma or cutlass_80 simt",
                              "gemv",
                              "sm90_xmma f64",
                              "of tiles by the GPU's facts"};
  return kNames.at(static_cast<std::size_t>(family));
}

std::uint32_t element_bytes(Arithmetic arithmetic) {
  constexpr std::array kBytes{2U, 4U, 4U, 8U, 1U, 1U, 1U};
  return kBytes.at(static_cast<std::size_t>(arithmetic));
}

double flops(const Shape& shape) {
  return 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) *
         static_cast<double>(shape.k) * static_cast<double>(shape.batch);
}

Sizes sizes_of(const Shape& shape) {
  const double m = static_cast<double>(shape.m);
  const double n = static_cast<double>(shape.n);
  const double k = static_cast<double>(shape.k);
  const double element =
      shape.operand_bytes > 0 ? shape.operand_bytes : element_bytes(shape.arithmetic);
  const double result = shape.result_bytes > 0 ? shape.result_bytes : element;
  const double passes = shape.accumulates ? 2 : 1;
  const double first = shape.first_bytes > 0 ? shape.first_bytes : element;
  const double moved = m * k * first + k * n * element + m * n * result * passes;
  return {element, result, moved * static_cast<double>(shape.batch)};
}

}  // namespace foretrace::products
