#include "reports/accuracy/error_figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "reports/timeline/statistics.h"

namespace foretrace {
namespace {

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

ErrorFigures figures_of(std::span<const ErrorSample> samples) {
  ErrorFigures figures{.regions = samples.size(), .in_band = {}, .spread = {}};
  if (samples.empty()) return figures;
  std::vector<double> errors, sizes, in_band, spreads;
  for (const ErrorSample& sample : samples) {
    errors.push_back(sample.error);
    sizes.push_back(std::abs(sample.error));
    if (sample.in_band) in_band.push_back(*sample.in_band ? 1 : 0);
    if (sample.spread) spreads.push_back(*sample.spread);
  }
  figures.median = median(sizes);
  figures.mean = mean(sizes);
  figures.p90 = quantile(sizes, 0.90);
  figures.p95 = quantile(sizes, 0.95);
  figures.worst = std::ranges::max(sizes);
  figures.bias = median(errors);
  if (!in_band.empty()) figures.in_band = mean(in_band);
  if (!spreads.empty()) figures.spread = median(spreads);
  return figures;
}

}  // namespace foretrace
