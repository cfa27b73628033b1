// Fit or prediction: which regions of a predicted timeline the machine's parameters learned from.
#pragma once

#include "models/machine/machine.h"
#include "reports/timeline/timeline.h"
#include "scenarios/program/program.h"

namespace foretrace::sim {

/// Fills RegionSamples::learned_by: of the parameters that decide a region (decided_by), those whose
/// source learned from this scenario, at this number of GPUs and this size.
void note_standing(Timeline& predicted, const Program& program, const Machine& machine);

}  // namespace foretrace::sim
