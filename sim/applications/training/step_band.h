// How far a predicted training step may be off, as PyTorch's measured steps showed it.
#pragma once

#include "models/machine/machine.h"
#include "reports/timeline/timeline.h"
#include "sim/applications/training/usage.h"

namespace foretrace::sim {

/// Factors of a step's time.
struct StepBand {
  double low = 1, high = 1;
};

/// `step`: the region with the band of all its work, which stays where steps were not measured in
/// PyTorch on such a machine, or where several nodes take part.
///
/// A step that the GPU bounds is known better than its host calls, and one whose GPU waits for its
/// host as well as these: what hides behind the other counts in neither.
StepBand step_band(const Machine& machine, const Timeline& timeline, const RegionSamples& step,
                   const StepUsage& usage);

/// Gives all steps of a timeline the band of the last one.
void set_step_bands(Timeline& timeline, const Machine& machine, const StepUsage& usage);

}  // namespace foretrace::sim
