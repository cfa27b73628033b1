#include "hw/products/load_times.h"

#include <algorithm>
#include <cmath>

#include "reports/timeline/statistics.h"

namespace foretrace::hw {

LoadTimes load_times(std::span<const double> ends_ms, std::size_t products) {
  LoadTimes times;
  times.load_ms = ends_ms.back();
  const double us_per_ms = 1e3 / static_cast<double>(products);
  std::vector<double> burst;
  std::vector<double> sustained;
  for (std::size_t i = 0; i < ends_ms.size(); ++i) {
    const double begin = i == 0 ? 0 : ends_ms[i - 1];
    const double us = (ends_ms[i] - begin) * us_per_ms;
    if (begin >= kBurstFromMs && ends_ms[i] <= kBurstToMs) burst.push_back(us);
    const bool is_last = i + 1 == ends_ms.size();
    if (begin >= times.load_ms - kSustainedWindowMs || is_last) {
      if (sustained.empty()) times.sustained_from_ms = begin;
      sustained.push_back(us);
    }
  }
  if (burst.empty()) burst.push_back(ends_ms.front() * us_per_ms);
  times.burst_us = median(burst);
  times.burst_timings = burst.size();
  times.sustained_us = median(sustained);
  times.sustained_timings = sustained.size();
  return times;
}

double tflops(double flop, double us) { return flop / us * 1e-6; }

std::size_t products_per_timing(double product_us, double timing_us, std::size_t most) {
  if (product_us >= timing_us) return 1;
  const double wanted = std::ceil(timing_us / std::max(product_us, 1e-3));
  return std::min(most, static_cast<std::size_t>(wanted));
}

}  // namespace foretrace::hw
