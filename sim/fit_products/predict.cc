#include "sim/fit_products/predict.h"

namespace foretrace::fit_products {

double gap(Reading& read, const Row& row) {
  return read.seconds(row.in_graph ? Param::GraphGap : Param::KernelGap);
}

double predict_at(Reading& read, const products::Taste& taste, const Row& row, double clock,
                  bool recorded) {
  const products::Speeds speeds = read_speeds(read, family_of(row.shape));
  if (recorded && row.plan) {
    return time_of(row.shape, *row.plan, speeds, clock, row.in_graph).total + gap(read, row);
  }
  const auto choices = likely_choices(row.shape, speeds, taste);
  return mean_time(row.shape, choices, speeds, clock, row.in_graph) + gap(read, row);
}

double predict(Reading& read, const products::Taste& taste, const Row& row, double load) {
  const products::Speeds speeds = read_speeds(read, family_of(row.shape));
  const auto choices = likely_choices(row.shape, speeds, taste);
  const double rested = mean_time(row.shape, choices, speeds, 1, row.in_graph);
  const double lost = lost_clock(read, row.shape, rested, speeds, row.contents);
  return mean_time(row.shape, choices, speeds, 1 - load * lost, row.in_graph) + gap(read, row);
}

}  // namespace foretrace::fit_products
