#include "sim/applications/fit_products/predict.h"

#include <algorithm>

#include "sim/applications/fit_products/kernel_plan.h"

namespace foretrace::fit_products {

double rested_clock(const std::vector<Row>& rows) {
  double clock = 0;
  for (const Row& row : rows) clock = std::max(clock, row.sustained_clock);
  return clock;
}

double gap(Reading& read, const Row& row) {
  return read.seconds(row.in_graph ? Param::GraphGap : Param::KernelGap);
}

double predict_at(Reading& read, const products::Heuristics& heuristics, const Row& row,
                  double clock, bool recorded) {
  const products::Family family = family_of(row.shape);
  const products::Speeds speeds = read_speeds(read, family);
  if (recorded && row.plan) {
    products::Plan plan = *row.plan;
    const auto heuristic = heuristics.find(family);
    const products::Tile* tile =
        heuristic == heuristics.end() ? nullptr : tile_of(heuristic->second, plan);
    if (tile != nullptr) plan.slow = tile->slow;
    return time_of(row.shape, plan, speeds, clock, row.in_graph).total + gap(read, row);
  }
  const auto choices = likely_choices(row.shape, speeds, heuristics);
  return mean_time(row.shape, choices, speeds, clock, row.in_graph) + gap(read, row);
}

double predict(Reading& read, const products::Heuristics& heuristics, const Row& row, double load) {
  const products::Speeds speeds = read_speeds(read, family_of(row.shape));
  const auto choices = likely_choices(row.shape, speeds, heuristics);
  const double rested = mean_time(row.shape, choices, speeds, 1, row.in_graph);
  const double lost = lost_clock(read, row.shape, rested, speeds, row.contents);
  return mean_time(row.shape, choices, speeds, 1 - load * lost, row.in_graph) + gap(read, row);
}

}  // namespace foretrace::fit_products
