#include "models/cost/products/vector.h"

#include <algorithm>
#include <cmath>

namespace foretrace::products {
namespace {

/// What a result adds up lies side by side in memory.
bool is_contiguous(const Shape& shape) {
  if (shape.m == 1 && shape.n == 1) return true;
  return shape.n == 1 ? shape.transposes_a : !shape.transposes_b;
}

/// With up to 300 results several threads share a row, and of long rows ever more; with 1,025 none
/// do, and between them nothing was timed.
double stepping_time(const Shape& shape) {
  constexpr double kShare = 300, kAlone = 1025;          // results
  constexpr double kShared = 2e-9, kNotShared = 9.5e-9;  // s a step
  constexpr std::int64_t kLongest = 1600;
  if (is_contiguous(shape)) return 0;
  const auto results = static_cast<double>(std::max(shape.m, shape.n) * shape.batch);
  const double alone = std::clamp((results - kShare) / (kAlone - kShare), 0.0, 1.0);
  if (alone > 0 && shape.arithmetic == Arithmetic::Half) return 0;  // by elements
  const auto steps = static_cast<double>(std::min(shape.k, kLongest));
  return steps * (kShared + alone * (kNotShared - kShared));
}

}  // namespace

double vector_time(const Shape& shape, const Speeds& speeds, double fits) {
  constexpr double kHopperSms = 132;
  constexpr double kCache = 6.2e12;  // bytes/s; products with tiles reach 0.8 to 0.95 of it
  constexpr double kElementsAside = 2.3e12, kElementsAcross = 1.8e12, kElementsTurned = 2.7e12;
  constexpr double kHalfStart = 0.5e-6;
  const double share = speeds.sms / kHopperSms;
  const double bytes = least_bytes(shape);
  const double cache = std::max(speeds.cache, kCache * share);
  double seconds = bytes / (fits * cache + (1 - fits) * speeds.memory);
  if (shape.arithmetic == Arithmetic::Half) {
    const double across = shape.transposes_b ? kElementsTurned : kElementsAcross;
    const double elements = is_contiguous(shape) ? kElementsAside : across;
    seconds = kHalfStart + std::max(seconds, bytes / (elements * share));
  }
  return std::max(seconds, stepping_time(shape));
}

}  // namespace foretrace::products
