// The predictor: what `program` would do in time on `machine`.
#pragma once

#include "models/machine.h"
#include "reports/timeline.h"
#include "scenarios/program.h"

namespace foretrace {

/// Once per process: SimGrid's clock and callbacks are process-wide (see sim/README.md).
/// Throws UsageError when the machine lacks a parameter that the program needs. A deadlock is an
/// answer: Timeline::outcome says who waits for what, and what ran until then is in the timeline.
Timeline simulate(const Program& program, const Machine& machine);

}  // namespace foretrace
