// Served requests as a timeline: a lane for each request, one for each engine's iterations, the
// cache in use, and percentiles as regions. hw/serving/engine/timeline.py writes the same of a
// measurement, so that both join.
#pragma once

#include "reports/timeline/timeline.h"
#include "scenarios/base/text/diagnostic.h"
#include "sim/applications/serving/predict.h"

namespace foretrace::serving {

/// Beyond these a timeline of very much traffic has every so manieth request, and neighbouring
/// iterations as one span. Figures are of all of them.
inline constexpr std::int64_t kMostDrawnRequests = 800;
inline constexpr std::int64_t kMostDrawnIterations = 50'000;

/// `iterations`: of the scenario's program, whose origin this timeline has, too; `line`: of
/// `serving` in the file.
Timeline timeline_of(const Serving& serving, const Predicted& predicted, const Timeline& iterations,
                     int line);

/// By which predicted and measured runs of one traffic find each other: of its name and requests.
std::string hash_of_traffic(const Serving& serving);

}  // namespace foretrace::serving
