// One training step predicted from its description: expanded, read and simulated.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "scenarios/training_step/description.h"
#include "sim/applications/training/step_shares.h"

namespace foretrace::sim {

struct PredictedStep {
  double seconds = 0;
  double low = 1, high = 1;  ///< factors of it: the band
  std::int64_t peak = 0;     ///< bytes
  bool fits = true;
  ProcessShares of_process;  ///< of those that are simulated

  /// Of the process of this number; of the first, which it is like, where it is not simulated.
  StepShares of_rank(std::uint32_t rank) const;
};

/// What does not fit is simulated all the same. Of processes that are alike one is simulated, and
/// of many micro-batches some (passes.h). `name` is the scenario's, `environment` what its
/// `environment:` would say. Makes an engine: one for each process.
PredictedStep predict_step(const training::TrainingStep& step, const Machine& machine,
                           const std::string& name,
                           const std::map<std::string, std::string>& environment = {});

/// As a child sends it (engine/children.h), and back; empty for nothing.
std::vector<double> numbers_of(const PredictedStep& step);
std::optional<PredictedStep> step_from(const std::vector<double>& numbers);

}  // namespace foretrace::sim
