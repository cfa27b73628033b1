// Memory on the timeline is what the expansion follows through the calls.
#include "sim/applications/training/memory_track.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/machine/machine.h"
#include "scenarios/read/scenario.h"
#include "sim/simulate.h"
#include "sim/applications/training/step_band.h"
#include "tests/scenarios/training_step/steps.h"

namespace foretrace::sim {
namespace {

training::TrainingStep tracked_step() {
  training::TrainingStep step;
  step.model = training::llama(2, 512, 8, 8, 1024, 6400);
  step.sequence = 512;
  step.steps = 2;
  return step;
}

std::vector<MemorySample> track_of(const training::TrainingStep& step,
                                   const training::Expansion& expansion) {
  const Timeline timeline =
      simulate(expansion.program, load_machine("h200-nvswitch-8"), Fidelity::Flow);
  EXPECT_EQ(step.processes(), std::ranges::max(timeline.lanes, {}, &Lane::process).process + 1);
  return memory_track(timeline, expansion.curves);
}

TEST(MemoryTrack, RisesToThePeakInEveryStepAndFallsToWhatStays) {
  const training::TrainingStep step = tracked_step();
  const training::Expansion expansion = training::expand(step);
  const auto samples = track_of(step, expansion);
  ASSERT_GT(samples.size(), 40u);
  std::int64_t most = 0, before = 0, peaks = 0;
  for (const MemorySample& sample : samples) {
    EXPECT_GE(sample.at_ns, before);
    before = sample.at_ns;
    most = std::max(most, sample.allocated);
    EXPECT_EQ(sample.reserved, (most + (2 << 20) - 1) / (2 << 20) * (2 << 20));
    if (sample.allocated == training::sum(expansion.memory)) ++peaks;
  }
  EXPECT_EQ(most, training::sum(expansion.memory));
  EXPECT_EQ(peaks, 2) << "in each step";
  using enum training::Part;
  const auto of = [&](training::Part part) {
    return expansion.memory[static_cast<std::size_t>(part)];
  };
  EXPECT_EQ(samples.back().allocated, of(Parameters) + of(Optimizer) + of(Buffers));
}

/// The most that is allocated, over what the expansion says of it.
double most_of(training::Schedule schedule) {
  training::TrainingStep step = tracked_step();
  step.pipeline = 2;
  step.passes = 6;
  step.schedule = schedule;
  const training::Expansion expansion = training::expand(step);
  std::int64_t most = 0;
  for (const MemorySample& sample : track_of(step, expansion)) {
    most = std::max(most, sample.allocated);
  }
  return static_cast<double>(most) / static_cast<double>(training::sum(expansion.memory));
}

TEST(MemoryTrack, FollowsTheMicroBatchesThatFillAPipeline) {
  EXPECT_EQ(most_of(training::Schedule::OneForwardOneBackward), 1);
}

TEST(MemoryTrack, FollowsAllMicroBatchesForwardBeforeOneGoesBackward) {
  EXPECT_EQ(most_of(training::Schedule::GPipe), 1);
}

TEST(StepBand, IsNarrowWhereTheGpuDecidesAndWideWhereTheHostDoes) {
  const Machine machine = load_machine("h200-nvswitch-8");
  Timeline timeline;
  timeline.lanes.push_back({});
  RegionSamples step;
  step.low_factor = 0.5;
  step.high_factor = 2;
  const auto high = [&](const Machine& on, double idle, double exposed) {
    sim::StepUsage usage;
    usage.of_process[0] = {.communication = exposed, .idle = idle};
    const sim::StepBand band = sim::step_band(on, timeline, step, usage);
    EXPECT_DOUBLE_EQ(band.low, 1 / band.high);
    return band.high;
  };
  EXPECT_DOUBLE_EQ(high(machine, 0, 0), 1.035);
  EXPECT_GT(high(machine, 0, 0.5), 1.035);
  EXPECT_GT(high(machine, 0.2, 0), high(machine, 0.1, 0));
  EXPECT_DOUBLE_EQ(high(machine, 0.5, 0), high(machine, 0.9, 0));
  EXPECT_NEAR(high(machine, 0.9, 0), 1.30, 0.01);
  // Nobody measured steps there.
  EXPECT_EQ(high(load_machine("a100-80gb-nvswitch-8"), 0, 0), 2);
  timeline.lanes.back().node = 1;
  EXPECT_EQ(high(machine, 0, 0), 2);
}

}  // namespace
}  // namespace foretrace::sim
