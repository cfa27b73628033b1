// One layout's step, predicted: does it fit, how long does it take, where does the time go.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scenarios/program/program.h"
#include "sim/applications/explain/repair.h"
#include "sim/applications/plan/layout.h"
#include "sim/record/rests_on.h"
#include "sim/simulate.h"

namespace foretrace::plan {

struct Prediction {
  double seconds = 0;
  double low = 0, high = 0;           ///< factors of it: the band
  double computing = 0, exposed = 0;  ///< shares of the step: mean over the processes
  double idle = 0;                    ///< a GPU waits for its host thread
  double bubble = 0;                  ///< only sends and receives run
  std::int64_t simulated_passes = 0;  ///< fewer than the layout has: the rest is like the last
  double next_pass = 0;   ///< seconds that a further micro-batch would add; 0: not known
  std::size_t spans = 0;  ///< that were simulated
  RestsOn rests_on{};     ///< of what was simulated
};

/// Device memory of a process, without a machine.
struct Fit {
  double bytes = 0;
  bool fits = false;
  bool is_tight = false;
};

/// Empty when the reader refuses the layout.
std::optional<Fit> fit_of(const Question& question, const Layout& layout);
/// What the reader says of one that it refuses.
std::string why_refused(const Question& question, const Layout& layout);

/// Micro-batches after which each further one adds the same: the pipeline is full, and gradients
/// are added to what others left.
std::int64_t settled_passes(const Layout& layout);

/// A layout's step with at most so many micro-batches, one rank of each kind: as it is simulated.
struct Trial {
  Layout layout;
  std::int64_t passes = 0;
  Program program;
};
/// `step` is the layout's, or the like with fewer micro-batches and layers. Throws UsageError where
/// it has too many operations.
Trial trial_of(const Layout& layout, const training::TrainingStep& step);

/// Each micro-batch beyond those of the trial takes what the last of them added. Of the program
/// `without` one cause where that is given. Makes an engine: one for each process. Throws
/// UsageError for what does not run on `machine`, or has no such cause. Of Says::TimesOnly the band
/// and what the time rests on are empty.
Prediction predict(const Machine& machine, Trial trial, std::optional<explain::Cause> without = {},
                   Says says = Says::Everything);

/// As a child sends it (engine/children.h), and back; empty for nothing.
std::vector<double> numbers_of(const Prediction& prediction);
std::optional<Prediction> prediction_from(const std::vector<double>& numbers);

}  // namespace foretrace::plan
