#include "models/cost/products/vector.h"

#include <algorithm>
#include <cmath>

#include "models/constants/constants.h"

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
  static const double kShare = constant("vector.few_results");
  static const double kAlone = constant("vector.many_results");
  static const double kShared = constant("vector.shared_step");
  static const double kNotShared = constant("vector.lone_step");
  static const std::int64_t kLongest = constant_count("vector.longest");
  if (is_contiguous(shape)) return 0;
  const auto results = static_cast<double>(std::max(shape.m, shape.n) * shape.batch);
  const double alone = std::clamp((results - kShare) / (kAlone - kShare), 0.0, 1.0);
  if (alone > 0 && shape.arithmetic == Arithmetic::Half) return 0;  // by elements
  const auto steps = static_cast<double>(std::min(shape.k, kLongest));
  return steps * (kShared + alone * (kNotShared - kShared));
}

}  // namespace

double vector_time(const Shape& shape, double bytes, const Speeds& speeds, double fits) {
  static const double kSms = constant("vector.sms");
  static const double kCache = constant("vector.cache");
  static const double kElementsAside = constant("vector.elements_aside");
  static const double kElementsAcross = constant("vector.elements_across");
  static const double kElementsTransposed = constant("vector.elements_transposed");
  static const double kHalfStart = constant("vector.half_start");
  const double share = speeds.sms / kSms;
  const double cache = std::max(speeds.cache, kCache * share);
  double seconds = bytes / (fits * cache + (1 - fits) * speeds.memory);
  if (shape.arithmetic == Arithmetic::Half) {
    const double across = shape.transposes_b ? kElementsTransposed : kElementsAcross;
    const double elements = is_contiguous(shape) ? kElementsAside : across;
    seconds = kHalfStart + std::max(seconds, bytes / (elements * share));
  }
  return std::max(seconds, stepping_time(shape));
}

}  // namespace foretrace::products
