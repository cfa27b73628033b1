#include "reports/timeline/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "scenarios/base/text/errors.h"

namespace foretrace {

double quantile(std::span<const double> values, double p) {
  std::vector<double> sorted(values.begin(), values.end());
  return quantiles(sorted, {&p, 1}).front();
}

std::vector<double> quantiles(std::vector<double>& values, std::span<const double> ascending) {
  FORETRACE_CHECK(!values.empty(), "a quantile needs at least one value");
  FORETRACE_CHECK(std::ranges::is_sorted(ascending), "quantiles are asked in ascending order");
  std::vector<double> found;
  auto begin = values.begin();  // before it are smaller ones
  for (const double p : ascending) {
    FORETRACE_CHECK(p >= 0 && p <= 1, "a quantile's p is between 0 and 1");
    const double position = p * static_cast<double>(values.size() - 1);
    const double lower = std::floor(position);
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(lower);
    std::nth_element(begin, at, values.end());
    begin = at;
    if (position == lower) {
      found.push_back(*at);
      continue;
    }
    const double next = *std::min_element(at + 1, values.end());
    found.push_back(*at + (next - *at) * (position - lower));
  }
  return found;
}

double median(std::span<const double> values) { return quantile(values, 0.5); }

double median_absolute_deviation(std::span<const double> values) {
  const double center = median(values);
  std::vector<double> deviations;
  deviations.reserve(values.size());
  for (const double value : values) deviations.push_back(std::abs(value - center));
  return median(deviations);
}

double relative_difference(double value, double reference) {
  return (value - reference) / reference;
}

}  // namespace foretrace
