// Simulating one process of each kind gives the same times as simulating all.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "models/machine/machine.h"
#include "models/what_if/what_if.h"
#include "scenarios/read/scenario.h"
#include "scenarios/training_step/expand.h"
#include "scenarios/training_step/places.h"
#include "sim/applications/training/passes.h"
#include "sim/applications/training/predict_step.h"
#include "sim/engine/children.h"
#include "sim/simulate.h"
#include "tests/scenarios/training_step/steps.h"

namespace foretrace {
namespace {

using training::Sharding;
using training::TrainingStep;

TrainingStep step_on(std::int64_t processes) {
  TrainingStep step;
  step.model = training::llama(2, 2048, 64, 64, 4096, 6400);
  step.sequence = 1024;
  step.data = processes;
  step.nodes = processes / 8;
  step.steps = 1;
  return step;
}

/// Begin and end of every span of the chosen processes, their steps, and to the picosecond when all
/// of it ended.
std::vector<double> times_of(const TrainingStep& step, training::Ranks ranks,
                             const std::vector<std::int64_t>& chosen) {
  const Timeline timeline = simulate(
      training::expand(step, ranks).program, load_machine("h100-nvswitch-8"), Fidelity::Flow,
      ranks == training::Ranks::All ? Simulated::All : Simulated::OneOfEach);
  std::map<std::uint32_t, std::vector<double>> of;
  for (const std::int64_t process : chosen) of[static_cast<std::uint32_t>(process)] = {};
  for (const Span& span : timeline.spans) {
    const auto process = of.find(timeline.lanes[span.lane].process);
    if (process == of.end()) continue;
    process->second.push_back(static_cast<double>(span.begin_ns));
    process->second.push_back(static_cast<double>(span.end_ns));
  }
  for (const RegionSamples& region : timeline.regions) {
    const auto process = of.find(region.process);
    if (process != of.end()) process->second.push_back(static_cast<double>(region.samples_ns[0]));
  }
  std::vector<double> times{static_cast<double>(timeline.end_ps)};
  for (const auto& [process, all] : of) {
    times.push_back(static_cast<double>(all.size()));
    times.insert(times.end(), all.begin(), all.end());
  }
  return times;
}

void expect_equal(const TrainingStep& step, const std::string& what, std::size_t at_most) {
  const auto chosen = training::one_of_each(step);
  EXPECT_LE(chosen.size(), at_most) << what;
  const auto times =
      run_in_children({[&] { return times_of(step, training::Ranks::All, chosen); },
                       [&] { return times_of(step, training::Ranks::OneOfEach, chosen); }});
  ASSERT_GT(times[0].size(), 100u) << what;
  ASSERT_GT(times[0].front(), 0) << what;
  EXPECT_EQ(times[0], times[1]) << what;
}

TEST(OneOfEach, TakesAsLongAsAllWhereCopiesAreSharedByNeighbours) {
  for (const std::int64_t shard : {4, 8, 16}) {
    TrainingStep step = step_on(64);
    step.sharding = Sharding::Fsdp;
    step.shard = shard;
    expect_equal(step, fmt::format("{} neighbours", shard), shard > 8 ? 2 : 1);
  }
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
      expect_equal(step, fmt::format("{} on {}", name, ranks), 1);
    }
  }
}

struct Layout {
  std::int64_t tensor, pipeline, data, nodes;
  std::size_t at_most;  ///< processes that are simulated
};

TEST(OneOfEach, TakesAsLongAsAllForGroupsOfEveryKindBesideEachOther) {
  const std::vector<Layout> layouts{{8, 1, 1, 1, 1}, {2, 1, 4, 1, 1}, {4, 1, 4, 2, 1},
                                    {2, 4, 1, 1, 4}, {2, 2, 4, 2, 2}, {1, 4, 4, 2, 4},
                                    {8, 1, 8, 8, 1}};
  for (const Layout& layout : layouts) {
    TrainingStep step = step_on(layout.tensor * layout.pipeline * layout.data);
    step.tensor = layout.tensor;
    step.pipeline = layout.pipeline;
    step.data = layout.data;
    step.nodes = layout.nodes;
    step.model.layers = layout.pipeline;
    step.steps = 1;
    step.passes = layout.pipeline > 1 ? layout.pipeline + 2 : 1;
    step.sequence_parallel = layout.tensor > 1 && layout.data % 2 == 0;
    step.model.tied = layout.data == 4;
    step.sharding = layout.data > 1 ? Sharding::Zero1 : Sharding::None;
    expect_equal(step,
                 fmt::format("tensor {}, pipeline {}, data {}, nodes {}", layout.tensor,
                             layout.pipeline, layout.data, layout.nodes),
                 layout.at_most);
  }
}

TEST(OneOfEach, TakesAsLongAsAllWhereProcessesShareExperts) {
  TrainingStep step = step_on(8);
  step.nodes = 1;
  step.model.experts = 8;
  step.model.top_k = 2;
  step.sharding = Sharding::Zero1;
  step.expert = 4;
  expect_equal(step, "zero1, experts over 4", 1);
  step.sharding = Sharding::Fsdp;
  step.expert = 2;
  expect_equal(step, "fsdp, experts over 2", 1);
}

TEST(OneOfEach, TakesAsLongAsAllWhereProcessesSplitSequences) {
  for (const auto exchange :
       {training::ContextExchange::AllGather, training::ContextExchange::SendRecv}) {
    TrainingStep step = step_on(8);
    step.nodes = 1;
    step.exchange = exchange;
    step.context = 4;
    step.data = 2;
    step.sharding = Sharding::Fsdp;
    expect_equal(step, "context 4, data 2", 4);
    step.sharding = Sharding::Zero1;
    step.tensor = step.context = 2;
    step.sequence_parallel = true;
    expect_equal(step, "tensor 2, context 2, data 2", 2);
    step.nodes = 2;
    step.tensor = 4;
    step.context = 4;
    step.data = 1;
    step.model.layers = 1;
    expect_equal(step, "a ring over two nodes", 4);
  }
}

TEST(OneOfEach, TakesAsLongAsAllWhereStagesAreInterleaved) {
  TrainingStep step = step_on(8);
  step.nodes = 1;
  step.model.layers = 4;
  step.model.tied = true;
  step.pipeline = 2;
  step.chunks = 2;
  step.passes = 10;
  step.data = 4;
  step.sharding = Sharding::Zero1;
  expect_equal(step, "pipeline 2, virtual 2", 2);
}

TEST(OneOfEach, IsOneProcessForEachStageOnThousandsOfGpus) {
  TrainingStep step = step_on(16384);
  step.tensor = 8;
  step.pipeline = 16;
  step.data = 128;
  EXPECT_EQ(training::one_of_each(step).size(), 16u);
}

TEST(PredictStep, TakesPassesThatAreNotSimulatedFromThePeriod) {
  TrainingStep step = step_on(8);
  step.nodes = 1;
  step.model.layers = 4;
  step.pipeline = 4;
  step.data = 2;
  step.passes = 40;
  step.sharding = Sharding::Zero1;
  const auto seconds_of = [&](training::Schedule schedule) {
    step.schedule = schedule;
    const auto predicted = sim::predict_step(step, load_machine("h100-nvswitch-8"), "a");
    return std::vector{predicted.seconds, sim::mean_of(predicted.of_process).computing};
  };
  const auto fewer = sim::with_fewer_passes(step);
  ASSERT_LT(fewer.passes, step.passes);
  const auto whole = [&] {
    const Program program = training::expand(step, training::Ranks::OneOfEach).program;
    const auto usage = sim::usage_of(
        simulate(program, load_machine("h100-nvswitch-8"), Fidelity::Flow, Simulated::OneOfEach));
    return std::vector{usage->seconds, sim::mean_of(usage->of_process).computing};
  };
  const auto both = run_in_children(
      {[&] { return seconds_of(training::Schedule::OneForwardOneBackward); }, whole});
  EXPECT_NEAR(both[0][0] / both[1][0], 1, 0.02);
  EXPECT_NEAR(both[0][1], both[1][1], 0.02);
}

/// Micro-batches that would go through in the time in which a pipeline's stages are idle.
double idle_passes(std::int64_t stages, std::int64_t chunks) {
  TrainingStep step = step_on(stages);
  step.model.layers = 4;
  step.model.hidden = 4096;
  step.model.ffn = 16384;
  step.sequence = 4096;
  step.nodes = 1;
  step.data = 1;
  step.pipeline = stages;
  step.chunks = chunks;
  step.return_outputs = false;  // joined behind the passes, they would add to each one
  const auto seconds = [&](std::int64_t passes) {
    return [step, passes]() mutable {
      step.passes = passes;
      Machine machine = load_machine("h100-nvswitch-8");
      apply_what_ifs(machine, {"host=1000x", "nvlink=100x"});
      return sim::numbers_of(sim::predict_step(step, machine, "a"));
    };
  };
  const auto both = run_in_children({seconds(4), seconds(8)});
  const double each = (both[1][0] - both[0][0]) / 4;
  return both[0][0] / each - 4;
}

TEST(InterleavedStages, AreIdleAsMegatronsFormulaSays) {
  // (stages - 1) / chunks micro-batches; the optimizer adds to it, and the first one is shorter:
  // it adds to no gradients.
  EXPECT_NEAR(idle_passes(4, 1), 3.0, 0.4);
  EXPECT_NEAR(idle_passes(2, 2), 0.5, 0.2);
  EXPECT_NEAR(idle_passes(2, 1) - idle_passes(2, 2), 0.5, 0.15);
}

TEST(InterleavedStages, TakeTurnsThatAreNotSimulatedFromTheLoop) {
  TrainingStep step = step_on(2);
  step.nodes = 1;
  step.model.layers = 4;
  step.data = 1;
  step.pipeline = step.chunks = 2;
  step.passes = 40;
  ASSERT_EQ(sim::with_fewer_passes(step).passes, 12);
  const auto fewer = [&] {
    return sim::numbers_of(sim::predict_step(step, load_machine("h100-nvswitch-8"), "a"));
  };
  const auto whole = [&] {
    const Program program = training::expand(step, training::Ranks::OneOfEach).program;
    return std::vector{sim::usage_of(simulate(program, load_machine("h100-nvswitch-8"),
                                              Fidelity::Flow, Simulated::OneOfEach))
                           ->seconds};
  };
  const auto both = run_in_children({fewer, whole});
  EXPECT_NEAR(both[0][0] / both[1][0], 1, 0.02);
}

}  // namespace
}  // namespace foretrace
