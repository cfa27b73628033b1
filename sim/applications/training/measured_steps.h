// Training steps that PyTorch was measured in (hw/pytorch/train.py), and the same steps predicted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "scenarios/training_step/description.h"
#include "sim/applications/training/predict_step.h"

namespace foretrace::sim {

struct MeasuredStep {
  std::string id;
  bool may_fit = false;  ///< its mark: else it only judges
  bool out_of_memory = false;
  double seconds = 0;             ///< median of synchronised steps, slowest rank
  std::int64_t peak = 0;          ///< bytes allocated, largest rank
  double traced_seconds = 0;      ///< the same step under the profiler; 0: no trace
  std::uint32_t traced_rank = 0;  ///< whose trace that is, and the next two
  double exposed = -1;            ///< share of the profiled step with NCCL's kernels alone
  double idle = -1;               ///< share of it in which the GPU does nothing
  std::string refused;            ///< why it is not expanded; else empty
  /// Of the profiled step, where all ranks' traces were joined: mean over the ranks.
  std::optional<StepShares> shares;
  training::TrainingStep step;
};

/// The lines of a results.jsonl, gzip'ed or not. Throws UsageError naming the line that is wrong.
std::vector<MeasuredStep> read_measured_steps(const std::filesystem::path& file);

/// One for each step, in forked children; empty for those that are not expanded. Call before any
/// engine exists in this process.
std::vector<std::optional<PredictedStep>> predict_steps(const std::vector<MeasuredStep>& steps,
                                                        const Machine& machine);

}  // namespace foretrace::sim
