// Equal layers are not simulated one by one: a step of many is extrapolated from two of few.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scenarios/training_step/description.h"
#include "sim/applications/plan/predict.h"

namespace foretrace::plan {

/// The same step with fewer layers: one of them is the step itself, or two are on a straight line
/// with it.
struct Folded {
  std::vector<training::TrainingStep> steps;
  double further = 0;  ///< the step beyond the second, in distances between the first and second
};

/// Whether steps run before the one that is looked at until the GPUs' clock is where it is in the
/// whole step.
enum class Clock : std::uint8_t { Settled, AsItIs };

/// Each chunk of each stage loses equally many layers: what is left has the same ends, and layers
/// enough between them for a steady order of gathering, computing and sending. Where that saves
/// little, the step is whole.
Folded folded(const training::TrainingStep& step, Clock clock = Clock::Settled);

/// What the whole step takes: all its times grow by a layer's for each layer. Empty where one of
/// `predictions` is.
std::optional<Prediction> unfolded(const std::vector<std::optional<Prediction>>& predictions,
                                   double further);

}  // namespace foretrace::plan
