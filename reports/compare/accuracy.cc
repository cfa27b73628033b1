#include "reports/compare/accuracy.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "reports/timeline/statistics.h"

namespace foretrace {
namespace {

constexpr double kAcceptedError = 0.15;

bool is_accepted(const RegionRow& row) {
  const double difference = std::abs(row.first->median_ns - row.second->median_ns);
  const double half_spread = (row.second->p95_ns - row.second->p5_ns) / 2;
  return difference <=
         std::max({kAcceptedError * row.second->median_ns, kNoiseFloorNs, half_spread});
}

}  // namespace

Accuracy accuracy_of(std::span<const Comparison> comparisons, Regions which) {
  Accuracy accuracy;
  std::vector<double> errors;
  std::size_t accepted = 0;
  for (const Comparison& comparison : comparisons) {
    for (const RegionRow& row : comparison.regions) {
      if (which != Regions::All && row.is_fit() != (which == Regions::Fit)) continue;
      if (which != Regions::All && comparison.is_stand_in(row)) continue;
      if (!row.error) {
        ++accuracy.missing;
        continue;
      }
      errors.push_back(std::abs(*row.error));
      if (is_accepted(row)) ++accepted;
    }
  }
  accuracy.regions = errors.size();
  if (errors.empty()) return accuracy;
  accuracy.median_abs_error = median(errors);
  accuracy.p95_abs_error = quantile(errors, 0.95);
  accuracy.worst_abs_error = std::ranges::max(errors);
  accuracy.share_within = static_cast<double>(accepted) / static_cast<double>(errors.size());
  return accuracy;
}

}  // namespace foretrace
