// Where the time of a predicted training step goes: what a planner asks first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/machine/machine.h"
#include "reports/timeline/timeline.h"
#include "scenarios/training_step/expand.h"
#include "sim/applications/training/step_shares.h"

namespace foretrace::sim {

/// Of the slowest process's last step. Shares of the step.
struct StepUsage {
  double seconds = 0;
  std::uint32_t process = 0;  ///< the slowest one
  std::int64_t begin_ns = 0;  ///< of its last step
  ProcessShares of_process;   ///< of all that are simulated, each in its last step

  const StepShares& own() const { return of_process.at(process); }
};

/// The slowest process's last step, or that of `process`; null where no region `step` has ended.
const RegionSamples* last_step(const Timeline& timeline, std::optional<std::uint32_t> process = {});

/// Empty where the timeline has no region `step`. Of `process`, where it is given, instead.
std::optional<StepUsage> usage_of(const Timeline& timeline,
                                  std::optional<std::uint32_t> process = {});

/// What a process's GPU does from one time to another, and what all others' do that have steps.
StepUsage usage_between(const Timeline& timeline, std::uint32_t process, std::int64_t from,
                        std::int64_t to);

/// "computing", "communication", "waiting for other ranks" or "the host thread": what most of the
/// step goes to.
std::string limit_of(const StepShares& shares);

/// Whether a process fits into a GPU, with what CUDA and the allocator keep beside tensors.
struct MemoryVerdict {
  double bytes = 0;     ///< of tensors, at the peak
  double capacity = 0;  ///< of a GPU
  bool fits = true;
  bool is_tight = false;  ///< so near that the allocator may have to give back and retry
};
MemoryVerdict memory_verdict(const training::PartBytes& memory, const Machine& machine);

/// What MFU is counted over: flop/s of a GPU in half precision, and the parameter that says so: the
/// datasheet's figure, else what products do at best. Throws UsageError where the machine has none.
struct Peak {
  double flops = 0;
  std::string key;
};
Peak mfu_peak(const Machine& machine);

/// "150.1 GB".
std::string gigabytes(double bytes);

/// "63762 tokens/s, 385 TFLOP/s of the model on each GPU, MFU 38.9 % of 989.4"
std::string rate_words(const training::TrainingStep& step, const training::Expansion& expansion,
                       const Machine& machine, double seconds);
/// "46 % computing, ...: limited by waiting for other ranks"
std::string share_words(const StepUsage& usage);
/// "35.9 GB of 85.0 GB: parameters 4.5 GB, ..."
std::string memory_words(const training::Expansion& expansion, const Machine& machine);

/// Lines for people: time, tokens and model FLOPs per second, what limits it, memory by part, and
/// where it does not fit the first things to change.
std::string describe(const training::TrainingStep& step, const training::Expansion& expansion,
                     const Machine& machine, const std::optional<StepUsage>& usage);

}  // namespace foretrace::sim
