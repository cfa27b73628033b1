#include "models/cost/products/vector.h"

#include <algorithm>

namespace foretrace::products {
namespace {

/// What a result adds up lies side by side in memory.
bool is_contiguous(const Shape& shape) {
  return shape.n == 1 ? shape.transposes_a : !shape.transposes_b;
}

/// With up to 512 results several threads share a row, and of long rows ever more.
double stepping_time(const Shape& shape) {
  constexpr std::int64_t kFew = 600, kLongest = 1600;
  constexpr double kAlone = 9.5e-9, kShared = 2e-9;  // s a step
  if (is_contiguous(shape)) return 0;
  const bool few = std::max(shape.m, shape.n) * shape.batch < kFew;
  if (!few && shape.arithmetic == Arithmetic::Half) return 0;  // by elements
  const auto steps = static_cast<double>(std::min(shape.k, kLongest));
  return steps * (few ? kShared : kAlone);
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
