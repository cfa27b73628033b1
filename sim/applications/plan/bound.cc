#include "sim/applications/plan/bound.h"

#include <algorithm>

#include "scenarios/training_step/expand.h"
#include "sim/applications/training/usage.h"

namespace foretrace::plan {
namespace {

/// The micro-batches that a stage's time lasts, with those that the pipeline's ends take.
double turns_of(const Layout& layout) {
  return static_cast<double>(layout.passes) +
         static_cast<double>(layout.pipeline - 1) / static_cast<double>(layout.interleaved);
}

/// flop/s that no product of the step's type exceeds: datasheets count by a lower clock than GPUs
/// may reach.
double fastest(const Question& question) {
  const Machine& machine = question.machine;
  double most = sim::mfu_peak(machine).flops;
  if (question.float8) return std::max(most, machine.get(Param::GpuF8Flops).value);
  if (!machine.has(Param::ProductsHalfPeak)) return most;
  return std::max(most, machine.get(Param::ProductsHalfPeak).value);
}

}  // namespace

double arithmetic_bound(const Question& question, const Layout& layout) {
  training::TrainingStep step = step_of(question, layout);
  const double flops = training::model_flops(step);
  double again = 0;
  if (layout.recompute == training::Recompute::Full) {
    // Forward once more: a third of what forward and backward are, without the head.
    training::Architecture headless = step.model;
    headless.vocab = 0;
    step.model = headless;
    again = training::model_flops(step) / 3;
  }
  const double ends = turns_of(layout) / static_cast<double>(layout.passes);
  return (flops + again) * ends / static_cast<double>(layout.gpus) / fastest(question);
}

Sample sample_of(const Question& question, const Layout& layout) {
  Sample sample{question, layout};
  sample.layout.pipeline = 1;
  sample.layout.interleaved = 1;
  sample.layout.data = layout.data * layout.pipeline;
  sample.layout.reduce_every_pass = false;
  sample.layout.passes = settled_passes(sample.layout);
  sample.question.global_batch =
      sample.layout.passes * sample.layout.micro_batch * sample.layout.data;
  return sample;
}

Wanted times_of(const Sample& sample) {
  return {sample.question, sample.layout, sample.layout.passes, Clock::AsItIs, {}, {},
          Says::TimesOnly};
}

double pass_bound(const Layout& layout, double pass_seconds) {
  // The clock is not as low yet as it will be, and the largest stage has more than its share.
  constexpr double kSure = 0.95;
  return kSure * pass_seconds / static_cast<double>(layout.pipeline) * turns_of(layout);
}

}  // namespace foretrace::plan
