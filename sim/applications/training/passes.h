// Steps of many micro-batches: some are simulated, the others follow from the period in which the
// pipeline has come by then: within 2 % of all of them.
#pragma once

#include <optional>

#include "reports/timeline/timeline.h"
#include "scenarios/program/program.h"
#include "scenarios/training_step/description.h"
#include "sim/applications/training/usage.h"

namespace foretrace::sim {

/// The same step with so many passes as are simulated: all, or enough to fill the pipeline, run
/// steadily and empty it again.
training::TrainingStep with_fewer_passes(const training::TrainingStep& step);

/// Micro-batches of a turn of the loop that a step's passes are: interleaved stages take as many at
/// once as there are stages.
std::int64_t passes_of_turn(const training::TrainingStep& step);

/// A step that was simulated, and the turns of its longest loop's second half.
struct SteadyStep {
  StepUsage simulated;  ///< of the process that the others wait for
  double seconds = 0;   ///< of the whole step
  StepUsage turns;      ///< one behind the other
  double turn = 0;      ///< seconds of one, on average

  /// With so many turns more than were simulated.
  StepUsage with_more(double more) const;
};
/// Empty where no loop has three turns.
std::optional<SteadyStep> steady_step(const StepUsage& usage, const Timeline& timeline,
                                      const Program& program);

/// Its with_more().
std::optional<StepUsage> with_more_turns(const StepUsage& usage, const Timeline& timeline,
                                         const Program& program, double turns);

}  // namespace foretrace::sim
