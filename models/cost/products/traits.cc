#include "models/cost/products/traits.h"

#include <algorithm>
#include <cmath>

namespace foretrace::products {
namespace {

double log2_of(double value) { return std::log2(std::max(value, 1e-12)); }

/// The largest power of two that divides so many bytes, up to 256.
double alignment_of(std::int64_t bytes) {
  constexpr std::int64_t kMost = 256;
  return log2_of(static_cast<double>(std::min(kMost, bytes & -bytes)));
}

/// Along one side: how far the last tile is filled on average, and how many there are.
struct Side {
  double filled, tiles, odd;
};
Side side_of(std::int64_t whole, std::int64_t tile) {
  const std::int64_t tiles = parts(whole, tile);
  const double exact = static_cast<double>(whole) / static_cast<double>(tile);
  return {exact / static_cast<double>(tiles), log2_of(static_cast<double>(tiles)),
          static_cast<double>(tiles % 2)};
}

}  // namespace

Traits traits_of(const Shape& shape, const Plan& plan, const Times& times, double fastest,
                 double sms) {
  const std::int64_t element = element_bytes(shape.arithmetic);
  const std::int64_t result = shape.result_bytes > 0 ? shape.result_bytes : element;
  const auto resident = static_cast<double>(std::max<std::int64_t>(1, plan.resident));
  const double waves = static_cast<double>(times.tiles) / sms / resident;
  const double whole = std::ceil(waves);
  const auto rows = static_cast<double>(plan.tile_m);
  const auto columns = static_cast<double>(plan.tile_n);
  const auto parts = static_cast<double>(plan.split);
  const auto k = static_cast<double>(shape.k);
  const Side down = side_of(shape.m, plan.tile_m);
  const Side across = side_of(shape.n, plan.tile_n);
  const auto yes = [](bool is) { return is ? 1.0 : 0.0; };
  const std::array<double, kTraits> known{
      log2_of(times.total / fastest),
      log2_of(times.total * 1e6),
      log2_of(times.memory / (times.arithmetic + times.operands + times.results)),
      log2_of(waves),
      waves / whole,
      log2_of(whole),
      log2_of(rows),
      log2_of(columns),
      log2_of(rows / columns),
      yes(plan.cooperative),
      static_cast<double>(plan.resident) / 8,
      yes(plan.padded),
      log2_of(parts),
      yes(plan.inside),
      log2_of(k / parts),
      down.filled,
      across.filled,
      down.tiles,
      across.tiles,
      down.odd,
      across.odd,
      log2_of(static_cast<double>(shape.m)),
      log2_of(static_cast<double>(shape.n)),
      log2_of(k),
      log2_of(static_cast<double>(shape.batch)),
      yes(shape.transposes_a),
      yes(shape.transposes_b),
      yes(shape.accumulates),
      yes(result > element),
      yes(shape.is_bf16),
      alignment_of((shape.transposes_a ? shape.k : shape.m) * element),
      alignment_of((shape.transposes_b ? shape.n : shape.k) * element),
      alignment_of(shape.m * result)};
  Traits traits{};
  std::ranges::transform(known, traits.begin(), [](double one) { return static_cast<float>(one); });
  return traits;
}

}  // namespace foretrace::products
