// The model of a fit: the simulator, for many machines and runs at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "sim/applications/fit/data.h"

namespace foretrace {

struct PredictionJob {
  std::shared_ptr<const Machine> machine;
  std::size_t run;
};

/// For each job the times, in nanoseconds, of the run's targets in their order; NaN where the
/// prediction has none. Each job is a simulation in a child process.
std::vector<std::vector<double>> predict_runs(const FitData& data,
                                              const std::vector<PredictionJob>& jobs);

/// For each target of `data` its class in the summary: "copies", "NCCL all_reduce LL, graph"; and
/// for NCCL which message size and launch it has.
struct TargetClass {
  std::string name;
  bool nccl = false, graph = false, one_thread = false;
  std::uint64_t bytes = 0;
};
std::vector<TargetClass> classify(const FitData& data, const Machine& machine);

}  // namespace foretrace
