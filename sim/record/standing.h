// Fit or prediction: which regions of a predicted timeline the machine's parameters learned from.
#pragma once

#include <span>

#include "models/machine/machine.h"
#include "reports/timeline/timeline.h"
#include "scenarios/program/program.h"

namespace foretrace::sim {

/// Parameters of what passes between spans, or stretches those that share something: no part of a
/// span's own time, so no share (RegionSamples::decided_by) shows them.
std::span<const Param> in_no_share();

/// Fills RegionSamples::learned_by: of the parameters that decide a region (decided_by), those
/// whose source learned from this scenario, at this number of GPUs and this size; and those in no
/// share that did.
void note_standing(Timeline& predicted, const Program& program, const Machine& machine);

}  // namespace foretrace::sim
