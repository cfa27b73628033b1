#include "models/cost/products/calls.h"

#include <algorithm>

#include "models/constants/constants.h"

namespace foretrace::products {

namespace {

/// Blocks that stay on their SMs draw tiles by a counter where there are more than two for each,
/// and it is cleared in front: of 311 products of Hopper's kernels in traces of blind rounds and
/// written sets, on H200s, the 68 of more than two waves had a memset and the others had none.
/// Blocks of one row take turns otherwise.
bool clears_a_counter(const Shape& shape, std::int64_t waves) {
  constexpr std::int64_t kWithout = 2;
  return std::min(shape.m, shape.n) > 1 && waves > kWithout;
}

}  // namespace

// Where blocks sum parts of k themselves, a memset in front clears what they take turns by.
double call_share(Family family, const Shape& shape, const Plan& plan, std::int64_t waves) {
  static const double kCutlass = constant("gemm.call.cutlass");
  static const double kFloat32 = constant("gemm.call.float32");
  static const double kFloat64 = constant("gemm.call.float64");
  static const double kMemset = constant("gemm.call.memset");
  double share = 1;
  switch (family) {
    case Family::HalfPairs:
    case Family::HalfOdd:
    case Family::Bf16Odd:
    case Family::Tf32Odd:
    case Family::Vector:  // 0.76 of it in small_float32_vectors of written-1
      share = kCutlass;
      break;
    case Family::Float32:
      share = plan.padded ? kCutlass : kFloat32;
      break;
    case Family::Float64:
      share = kFloat64;
      break;
    default:
      break;
  }
  const bool takes_turns = plan.split > 1 && plan.inside;
  const bool draws_tiles = family == Family::Half && clears_a_counter(shape, waves);
  return takes_turns || draws_tiles ? share + kMemset : share;
}

}  // namespace foretrace::products
