#include "scenarios/serving/traffic.h"

#include <algorithm>

#include "scenarios/serving/random_numbers.h"

namespace foretrace::serving {
namespace {

__extension__ using Wide = __int128;

constexpr std::uint64_t kGaps = 0, kPrompts = 1, kOutputs = 2;  // streams

/// Rounds down, as all of these do, below 0 too.
std::int64_t floor_div(Wide a, Wide b) {
  return static_cast<std::int64_t>(a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0));
}

std::int64_t length(RandomNumbers& numbers, const Law& law) {
  if (law.spread_ppm == 0) return law.mean;
  const Wide deviation = Wide{law.mean} * law.spread_ppm * numbers.normal();
  return std::max<std::int64_t>(1, law.mean + floor_div(deviation, Wide{1'000'000} * kOne));
}

/// Of a gamma law with mean 1 and shape halves / 2, with 32 binary places: exponentials, and for a
/// half a squared normal.
std::int64_t gap(RandomNumbers& numbers, std::int64_t halves) {
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < halves / 2; ++i) total += numbers.exponential();
  if (halves % 2 == 1) {
    const Wide normal = numbers.normal();
    total += static_cast<std::int64_t>((normal * normal) >> 32) / 2;
  }
  return static_cast<std::int64_t>(Wide{total} * 2 / halves);
}

}  // namespace

std::vector<Arrival> arrivals_of(const Traffic& traffic) {
  if (traffic.arrivals == Arrivals::Trace) return traffic.trace;
  RandomNumbers gaps{traffic.seed, kGaps}, prompts{traffic.seed, kPrompts},
      outputs{traffic.seed, kOutputs};
  const std::int64_t halves = traffic.arrivals == Arrivals::Poisson ? 2 : traffic.shape_halves;
  std::vector<Arrival> found;
  std::int64_t at_ns = 0;
  for (std::int64_t i = 0; i < traffic.requests; ++i) {
    Arrival one;
    if (traffic.arrivals != Arrivals::Closed) {
      at_ns += static_cast<std::int64_t>((Wide{gap(gaps, halves)} * traffic.mean_gap_ns) >> 32);
      one.at_ns = at_ns;
    } else if (i < traffic.concurrency) {
      one.at_ns = 0;
    }
    one.prompt = length(prompts, traffic.prompt);
    one.output = length(outputs, traffic.output);
    found.push_back(one);
  }
  return found;
}

std::int64_t longest(const std::vector<Arrival>& arrivals) {
  std::int64_t most = 1;
  for (const Arrival& one : arrivals) most = std::max(most, one.prompt + one.output);
  return most;
}

}  // namespace foretrace::serving
