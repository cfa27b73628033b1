// What no explanation may say, over random programs and over training steps as they ship.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "reports/uses/uses.h"
#include "scenarios/read/scenario.h"
#include "scenarios/training_step/expand.h"
#include "sim/engine/children.h"
#include "sim/explain/explain.h"
#include "sim/simulate.h"
#include "tests/properties/choices.h"
#include "tests/scenarios/training_step/steps.h"

namespace foretrace::explain {
namespace {

constexpr std::size_t kStreams = 3;

/// A region of kernels on three streams, copies, host work and waits, in a loop; it ends with a
/// wait, or with one of one stream only.
struct RandomSteps {
  std::string text;
  std::array<double, kStreams> busy_us{};  ///< what the kernels of each stream take by themselves
  double most_busy_us() const { return *std::ranges::max_element(busy_us); }
};

RandomSteps random_steps(std::uint64_t seed) {
  test::Choices choices{seed, 64};
  RandomSteps steps;
  const std::uint32_t turns = 2 + choices.below(4);
  steps.text =
      "schema_version: 1\nname: random\n"
      "streams: {a: {flags: non_blocking}, b: {flags: non_blocking}, c: {flags: non_blocking}}\n"
      "events: {e: {}}\n"
      "buffers: {x: {memory: device, size: 1MiB}, p: {memory: pageable, size: 1MiB}}\n"
      "threads:\n  main:\n"
      "    - repeat:\n        times: " +
      std::to_string(turns) + "\n        ops:\n        - region:\n            name: step\n" +
      "            ops:\n";
  const auto add = [&](const std::string& op) { steps.text += "            - " + op + "\n"; };
  const auto name = [](std::size_t stream) { return std::string(1, "abc"[stream]); };
  const std::size_t ops = 3 + choices.below(12);
  for (std::size_t i = 0; i < ops; ++i) {
    const std::size_t stream = choices.below(kStreams);
    switch (choices.below(6)) {
      case 0:
        add("host_compute: {duration: " + std::to_string(1 + choices.below(80)) + "us}");
        break;
      case 1:
        add("stream_synchronize: {stream: " + name(stream) + "}");
        break;
      case 2:
        add("event_record: {event: e, stream: " + name(stream) + "}");
        add("stream_wait_event: {event: e, stream: " + name(choices.below(kStreams)) + "}");
        break;
      case 3:
        add("memcpy_async: {stream: " + name(0) + ", src: p, dst: x}");
        break;
      default: {
        const std::uint32_t us = 5 + choices.below(120);
        steps.busy_us[stream] += us * turns;
        add(fmt::format("spin: {{stream: {}, duration: {}us}}", name(stream), us));
      }
    }
  }
  add(choices.one_in(3) ? "stream_synchronize: {stream: a}" : "device_synchronize: {}");
  return steps;
}

Program program_of(const std::string& text) {
  auto read = read_scenario(text, "x.yaml");
  if (!read) {
    ADD_FAILURE() << render(read.error(), text) << text;
    return {};
  }
  return std::move(read->program);
}

TEST(ExplainedPrograms, AreNeverShorterThanTheirKernelsWithoutAnyCause) {
  const std::uint64_t count = std::getenv("FORETRACE_ALL_TESTS") != nullptr ? 1000 : 60;
  const Machine machine = load_machine("h200-nvswitch-8");
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    const RandomSteps steps = random_steps(seed);
    const Explanation explanation = explain(program_of(steps.text), machine);
    ASSERT_TRUE(explanation.ends) << steps.text;
    const double least = std::min(steps.most_busy_us() * 1e-6, explanation.seconds);
    for (const Gain& gain : explanation.gains) {
      EXPECT_GE(gain.seconds, 0.999 * least) << name_of(gain.cause) << "\n" << steps.text;
      // Kernels that no longer take turns share the GPU; nothing else gets slower.
      EXPECT_GE(gain.gain, -0.05) << name_of(gain.cause) << "\n" << steps.text;
    }
    EXPECT_GE(explanation.rest_seconds == 0 ? least : explanation.rest_seconds, 0.999 * least)
        << steps.text;
    if (HasFailure()) return;
  }
}

training::TrainingStep plain_step() {
  training::TrainingStep step;
  step.model = training::llama(4, 4096, 32, 8, 14336, 32000);
  step.sequence = 2048;
  step.steps = 3;
  return step;
}

std::vector<std::pair<std::string, training::TrainingStep>> plain_steps() {
  using training::Sharding;
  std::vector<std::pair<std::string, training::TrainingStep>> all;
  const auto add = [&](const std::string& name, const auto& change) {
    training::TrainingStep step = plain_step();
    change(step);
    all.emplace_back(name, step);
  };
  add("one GPU", [](auto&) {});
  add("recomputation", [](auto& step) { step.recompute = training::Recompute::Full; });
  add("accumulation", [](auto& step) { step.passes = 4; });
  add("ddp", [](auto& step) { step.data = 2, step.sharding = Sharding::Ddp; });
  add("zero1", [](auto& step) { step.data = 4, step.sharding = Sharding::Zero1; });
  add("fsdp", [](auto& step) { step.data = 8, step.sharding = Sharding::Fsdp; });
  add("fsdp of float32", [](auto& step) {
    step.data = 2, step.sharding = Sharding::Fsdp, step.float32_parameters = true;
  });
  add("tensor", [](auto& step) {
    step.tensor = 2, step.sequence_parallel = step.loss_parallel = true;
  });
  add("pipeline", [](auto& step) { step.pipeline = 2, step.passes = 8; });
  add("a small model", [](auto& step) { step.model = training::llama(4, 512, 8, 8, 2048, 8000); });
  return all;
}

/// The shares of their time in which GPUs compute, the least and the most; and what of the critical
/// path kernels are.
std::vector<double> computing_of(const Program& program, const Machine& machine) {
  const Timeline timeline = simulate(program, machine, Fidelity::Flow, Simulated::OneOfEach);
  double least = 1, most = 0;
  for (const GpuTime& gpu : gpu_times(timeline)) {
    const auto kernels = static_cast<double>(gpu.by_use[static_cast<std::size_t>(Use::Kernel)]);
    least = std::min(least, kernels / static_cast<double>(gpu.ns));
    most = std::max(most, kernels / static_cast<double>(gpu.ns));
  }
  const CriticalPath path = critical_path(timeline);
  const auto on_path = path.by_class[static_cast<std::size_t>(SpanClass::Kernel)];
  return {least, most, static_cast<double>(on_path) / static_cast<double>(path.ns)};
}

TEST(ExplainedTrainingSteps, GainNoMoreThanTheirGpusAreIdleAndCommunicate) {
  const Machine machine = load_machine("h100-nvswitch-8");
  for (const auto& [name, step] : plain_steps()) {
    const std::string text =
        "schema_version: 1\nname: a\n" +
        training::expand(step, training::Ranks::OneOfEach).text;
    const Program program = read_expanded(text, "a.yaml");
    const Explanation explanation = explain(program, machine, Simulated::OneOfEach);
    const auto computing = run_in_children({[&] { return computing_of(program, machine); }});
    const double least = computing[0][0], most = computing[0][1], on_path = computing[0][2];
    ASSERT_FALSE(explanation.gains.empty()) << name;
    for (const Gain& gain : explanation.gains) {
      // Kernels are slower beside NCCL's, which is communication's, too.
      const double beside = gain.cause == Cause::Communication ? 0.04 : 0.01;
      EXPECT_LE(gain.gain, 1 - least + beside) << name << ": " << name_of(gain.cause);
    }
    if (most > 0.9) {
      EXPECT_GT(on_path, most - 0.05) << name << ": the path and the GPUs' table";
    }
  }
}

}  // namespace
}  // namespace foretrace::explain
