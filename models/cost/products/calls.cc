#include "models/cost/products/calls.h"

#include <algorithm>

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

// From nine products of each kind on one H100's host, which asked 13.0 us for one of Hopper's, 10.6
// for CUTLASS', 14.7 for xmma's in float32 and 15.8 in float64, each within 0.6 us, and 2.4 us more
// where blocks sum parts of k themselves: a memset in front clears what they take turns by
// (tests/hw/causes/product_calls.yaml).
double call_share(const Shape& shape, const Plan& plan, std::int64_t waves) {
  constexpr double kCutlass = 0.815, kFloat32 = 1.13, kFloat64 = 1.21, kMemset = 0.185;
  double share = 1;
  const Family family = family_of(shape);
  switch (family) {
    case Family::HalfPairs:
    case Family::HalfOdd:
    case Family::BrainOdd:
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
