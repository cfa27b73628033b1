// Simulating one process of each kind gives the same times as simulating all.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "models/machine/machine.h"
#include "scenarios/read/scenario.h"
#include "scenarios/text/errors.h"
#include "scenarios/training_step/expand.h"
#include "sim/engine/children.h"
#include "sim/simulate.h"

namespace foretrace {
namespace {

using training::Sharding;
using training::TrainingStep;

TrainingStep step_on(std::int64_t processes) {
  TrainingStep step;
  step.model = {.name = "llama",
                .layers = 8,
                .hidden = 2048,
                .heads = 64,
                .kv_heads = 64,
                .head_dim = 32,
                .ffn = 4096,
                .vocab = 6400};
  step.sequence = 1024;
  step.data = processes;
  step.nodes = processes / 8;
  step.steps = 2;
  return step;
}

/// Begin and end of every span of process 0, and of its steps.
std::vector<double> times_of(const TrainingStep& step, Simulated simulated) {
  const std::string text = "schema_version: 1\nname: a\n" + training::expand(step).text;
  const auto read = read_scenario(text, "a.yaml");
  if (!read) throw std::runtime_error{render(read.error(), text)};
  const Timeline timeline =
      simulate(read->program, load_machine("h100-nvswitch-8"), Fidelity::Flow, simulated);
  std::vector<double> times;
  for (const Span& span : timeline.spans) {
    if (timeline.lanes[span.lane].process != 0) continue;
    times.push_back(static_cast<double>(span.begin_ns));
    times.push_back(static_cast<double>(span.end_ns));
  }
  for (const RegionSamples& region : timeline.regions) {
    if (region.process == 0) times.push_back(static_cast<double>(region.samples_ns.front()));
  }
  return times;
}

void expect_equal(const TrainingStep& step, const std::string& what) {
  const auto times = run_in_children({[&] { return times_of(step, Simulated::All); },
                                      [&] { return times_of(step, Simulated::OneOfEach); }});
  ASSERT_GT(times[0].size(), 100u) << what;
  EXPECT_EQ(times[0], times[1]) << what;
}

TEST(OneOfEach, TakesAsLongAsAllForEachShardingOf8And64Ranks) {
  const std::map<std::string, Sharding> shardings{{"ddp", Sharding::Ddp},
                                                  {"zero1", Sharding::Zero1},
                                                  {"zero2", Sharding::Zero2},
                                                  {"fsdp", Sharding::Fsdp}};
  for (const auto& [name, sharding] : shardings) {
    for (const std::int64_t ranks : {8, 64}) {
      TrainingStep step = step_on(ranks);
      step.sharding = sharding;
      expect_equal(step, fmt::format("{} on {}", name, ranks));
    }
  }
}

TEST(OneOfEach, TakesAsLongAsAllForTensorParallelRanks) {
  for (const bool sequence : {false, true}) {
    TrainingStep step = step_on(8);
    step.tensor = std::exchange(step.data, 1);
    step.sequence_parallel = sequence;
    expect_equal(step, fmt::format("tensor parallel, sequence {}", sequence));
  }
}

TEST(OneOfEach, TakesAsLongAsAllForPipelinesWithReplicas) {
  for (const std::int64_t ranks : {16, 32}) {
    TrainingStep step = step_on(ranks);
    step.pipeline = 4;
    step.data = ranks / step.pipeline;
    step.passes = 6;
    step.sharding = Sharding::Zero1;
    expect_equal(step, fmt::format("pipeline on {}", ranks));
  }
}

}  // namespace
}  // namespace foretrace
