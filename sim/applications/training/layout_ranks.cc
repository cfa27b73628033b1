#include "sim/applications/training/layout_ranks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace foretrace::sim {
namespace {

/// From 0; equal values have the mean of their places.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (std::size_t from = 0; from < order.size();) {
    std::size_t to = from;
    while (to < order.size() && values[order[to]] == values[order[from]]) ++to;
    const double mean = static_cast<double>(from + to - 1) / 2;
    for (; from < to; ++from) ranks[order[from]] = mean;
  }
  return ranks;
}

/// 0 where all of either are the same.
double correlation_of(const std::vector<double>& a, const std::vector<double>& b) {
  const auto count = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / count;
  const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / count;
  double together = 0, of_a = 0, of_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    together += (a[i] - mean_a) * (b[i] - mean_b);
    of_a += (a[i] - mean_a) * (a[i] - mean_a);
    of_b += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return of_a > 0 && of_b > 0 ? together / std::sqrt(of_a * of_b) : 0;
}

LayoutRanks ranks_of_group(const std::string& group, const std::vector<LayoutTrial>& trials) {
  std::vector<double> measured, predicted;
  for (const LayoutTrial& trial : trials) {
    measured.push_back(trial.measured);
    predicted.push_back(trial.predicted);
  }
  const LayoutTrial& best = *std::ranges::min_element(trials, {}, &LayoutTrial::measured);
  const LayoutTrial& chosen = *std::ranges::min_element(trials, {}, &LayoutTrial::predicted);
  return {group,     trials.size(), correlation_of(ranks_of(measured), ranks_of(predicted)),
          chosen.id, best.id,       chosen.measured / best.measured - 1};
}

}  // namespace

std::vector<LayoutRanks> layout_ranks(const std::vector<LayoutTrial>& trials, std::size_t least) {
  std::map<std::string, std::vector<LayoutTrial>> groups;
  for (const LayoutTrial& trial : trials) groups[trial.group].push_back(trial);
  std::vector<LayoutRanks> ranks;
  for (const auto& [group, of_group] : groups) {
    if (of_group.size() >= least) ranks.push_back(ranks_of_group(group, of_group));
  }
  return ranks;
}

}  // namespace foretrace::sim
