// A row of the table, predicted: what the measuring program would print.
#pragma once

#include "models/cost/products/choice.h"
#include "sim/applications/fit_products/table.h"

namespace foretrace::fit_products {

/// The highest clock that NVML said beside any of them, in Hz.
double rested_clock(const std::vector<Row>& rows);

/// What stands between two products in the table's times, in seconds.
double gap(Reading& read, const Row& row);

/// At a given part of the rested clock, with the recorded plan where there is one and `recorded`.
double predict_at(Reading& read, const products::Heuristics& heuristics, const Row& row,
                  double clock, bool recorded);

/// The table's "burst" is the time 1 to 30 ms after a rest of 25 ms that follows another load: the
/// clock has lost this much of what it loses in the end.
inline constexpr double kBurstLoad = 0.4;

/// With the model's own clock. `load` is 0 for a rested GPU and 1 for a sustained load.
double predict(Reading& read, const products::Heuristics& heuristics, const Row& row, double load);

}  // namespace foretrace::fit_products
