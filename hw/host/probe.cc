#include "hw/host/probe.h"

#include <algorithm>

#include "hw/trace/clock.h"

namespace foretrace::hw {
namespace {

constexpr double kLow = 0.16, kHigh = 0.84;  // one sigma of a normal distribution

/// Of sorted values, between the two that are nearest.
double at_share(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = place - static_cast<double>(below);
  return sorted[below] * (1 - part) + sorted[above] * part;
}

}  // namespace

Measured summary(const Quantity& quantity, std::vector<double> values) {
  std::erase_if(values, [](double value) { return !(value > 0); });
  std::ranges::sort(values);
  Measured result{quantity, 0, 0, values.size()};
  if (values.empty()) return result;
  result.value = at_share(values, 1.0 / 2);
  result.spread = (at_share(values, kHigh) - at_share(values, kLow)) / 2 / result.value;
  return result;
}

std::vector<Measured> measure(const std::vector<Probe>& probes, double seconds, int least_rounds) {
  std::vector<std::vector<std::vector<double>>> values(probes.size());
  const std::int64_t until = now_ns() + static_cast<std::int64_t>(seconds * 1e9);
  for (int round = 0; round <= least_rounds || now_ns() < until; ++round) {
    for (std::size_t i = 0; i < probes.size(); ++i) {
      const std::vector<double> once = probes[i].once();
      if (round == 0) continue;
      values[i].resize(probes[i].quantities.size());
      for (std::size_t q = 0; q < values[i].size() && q < once.size(); ++q) {
        values[i][q].push_back(once[q]);
      }
    }
  }
  std::vector<Measured> results;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    for (std::size_t q = 0; q < probes[i].quantities.size(); ++q) {
      results.push_back(summary(probes[i].quantities[q], values[i][q]));
    }
  }
  return results;
}

}  // namespace foretrace::hw
