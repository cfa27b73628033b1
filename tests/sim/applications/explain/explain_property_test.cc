// What no explanation may say, over random programs and over training steps as they ship.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "reports/spans/span_class.h"
#include "reports/uses/critical_path.h"
#include "reports/uses/intervals.h"
#include "reports/uses/uses.h"
#include "scenarios/read/scenario.h"
#include "scenarios/training_step/expand.h"
#include "sim/engine/children.h"
#include "sim/applications/explain/explain.h"
#include "sim/simulate.h"
#include "tests/properties/choices.h"
#include "tests/scenarios/training_step/steps.h"

namespace foretrace::explain {
namespace {

constexpr std::size_t kStreams = 3;

/// What is left of a program's time whatever is taken away, from its text alone.
class Bounds {
 public:
  void host_compute(std::uint32_t us) { ops_.push_back({.what = Op::Host, .us = us}); }
  void record(std::size_t stream) { ops_.push_back({.what = Op::Record, .stream = stream}); }
  void wait(std::size_t stream) { ops_.push_back({.what = Op::Wait, .stream = stream}); }
  void copy() { ops_.push_back({.what = Op::Copy}); }
  void spin(std::size_t stream, std::uint32_t us, std::uint32_t blocks) {
    ops_.push_back({.what = Op::Spin, .stream = stream, .us = us, .blocks = blocks});
  }

  /// In us, of all turns.
  void count(std::uint32_t turns) {
    std::array<double, kStreams> tail{};  // the longest chain that ends on a stream
    double recorded = 0;
    for (std::uint32_t turn = 0; turn < turns; ++turn) {
      for (const Op& op : ops_) {
        if (op.what == Op::Host) host += op.us;
        if (op.what == Op::Copy) ++copies;
        if (op.what == Op::Record) recorded = tail[op.stream];
        if (op.what == Op::Wait) tail[op.stream] = std::max(tail[op.stream], recorded);
        if (op.what != Op::Spin) continue;
        tail[op.stream] += op.us;
        block_us += static_cast<double>(op.us) * op.blocks;
      }
    }
    chain = *std::ranges::max_element(tail);
  }
  double host = 0, chain = 0;
  double block_us = 0;  ///< of one SM
  double copies = 0;    ///< of 1 MiB, in one direction

 private:
  struct Op {
    enum { Host, Record, Wait, Copy, Spin } what;
    std::size_t stream = 0;
    std::uint32_t us = 0, blocks = 0;
  };
  std::vector<Op> ops_;
};

/// A region of kernels on three streams, copies, host work and waits, in a loop; it ends with a
/// wait, or with one of one stream only.
struct RandomSteps {
  std::string text;
  Bounds bounds;
};

RandomSteps random_steps(std::uint64_t seed) {
  test::Choices choices{seed, 96};
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
      case 0: {
        const std::uint32_t us = 1 + choices.below(80);
        steps.bounds.host_compute(us);
        add(fmt::format("host_compute: {{duration: {}us}}", us));
        break;
      }
      case 1:
        add("stream_synchronize: {stream: " + name(stream) + "}");
        break;
      case 2: {
        const std::size_t waits = choices.below(kStreams);
        steps.bounds.record(stream);
        steps.bounds.wait(waits);
        add("event_record: {event: e, stream: " + name(stream) + "}");
        add("stream_wait_event: {event: e, stream: " + name(waits) + "}");
        break;
      }
      case 3:
        steps.bounds.copy();
        add("memcpy_async: {stream: " + name(0) + ", src: p, dst: x}");
        break;
      default: {
        constexpr std::array<std::uint32_t, 4> kBlocks{1, 1, 66, 132};
        const std::uint32_t us = 5 + choices.below(120);
        const std::uint32_t blocks = kBlocks[choices.below(kBlocks.size())];
        steps.bounds.spin(stream, us, blocks);
        add(fmt::format("spin: {{stream: {}, duration: {}us, blocks: {}}}", name(stream), us,
                        blocks));
      }
    }
  }
  add(choices.one_in(3) ? "stream_synchronize: {stream: a}" : "device_synchronize: {}");
  steps.bounds.count(turns);
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

TEST(ExplainedPrograms, AreNeverShorterThanTheirChainsTheirResourcesAndTheirWork) {
  const std::uint64_t count = std::getenv("FORETRACE_ALL_TESTS") != nullptr ? 1000 : 60;
  const Machine machine = load_machine("h200-nvswitch-8");
  const double sms = machine.count(Param::SmCount);
  const double copy_us = 1048576 / machine.rate(Param::H2dBandwidth) * 1e6;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    const RandomSteps steps = random_steps(seed);
    const Bounds& bounds = steps.bounds;
    const Explanation explanation = explain(program_of(steps.text), machine);
    ASSERT_TRUE(explanation.ends) << steps.text;
    const auto expect_bounds = [&](double seconds, const std::string& without) {
      constexpr double kRounding = 0.9999;  // spans are rounded to nanoseconds
      const double us = seconds * 1e6;
      EXPECT_GE(us, kRounding * bounds.chain) << "chain, without " << without << steps.text;
      EXPECT_GE(us, kRounding * bounds.block_us / sms) << "SMs, without " << without << steps.text;
      EXPECT_GE(us, kRounding * bounds.host) << "host, without " << without << steps.text;
      EXPECT_GE(us, kRounding * bounds.copies * copy_us)
          << "copies, without " << without << steps.text;
    };
    for (const Gain& gain : explanation.gains) {
      const std::string cause{name_of(gain.cause)};
      expect_bounds(gain.seconds, cause);
      EXPECT_GE(gain.gain, 0) << cause << "\n" << steps.text;
      EXPECT_EQ(gain.simulated > 0, !gain.bound.empty()) << cause << ": cut, and not said";
      if (gain.simulated > 0) {
        EXPECT_GT(gain.simulated, explanation.seconds)
            << cause << ": only a longer run contradicts a bound here\n"
            << steps.text;
      }
    }
    if (explanation.rest_seconds > 0) expect_bounds(explanation.rest_seconds, "all causes");
    EXPECT_LE(explanation.rest_seconds, explanation.seconds);
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
  add("tensor",
      [](auto& step) { step.tensor = 2, step.sequence_parallel = step.loss_parallel = true; });
  add("pipeline", [](auto& step) { step.pipeline = 2, step.passes = 8; });
  add("a small model", [](auto& step) { step.model = training::llama(4, 512, 8, 8, 2048, 8000); });
  return all;
}

struct Computing {
  double idle_or_communicating_s = 0;  ///< of the GPU that has least of it
  double most = 0;                     ///< share of a GPU's time in which it computes
  double on_path = 0;                  ///< kernels' share of the critical path
};

/// ns, of a GPU: it computes, and neither NCCL's kernels nor copies run beside.
std::int64_t computing_alone(const Timeline& timeline, std::uint32_t process,
                             std::uint32_t device) {
  Times kernels, others;
  for (const Span& span : timeline.spans) {
    const Lane& lane = timeline.lanes[span.lane];
    if (lane.process != process || lane.device != device) continue;
    const SpanClass what = class_of(timeline.ops[span.op], lane);
    if (what == SpanClass::Kernel) kernels.emplace_back(span.begin_ns, span.end_ns);
    if (what == SpanClass::Nccl || what == SpanClass::Copy) {
      others.emplace_back(span.begin_ns, span.end_ns);
    }
  }
  return length(without(joined(kernels), joined(others)));
}

std::vector<double> computing_of(const Program& program, const Machine& machine) {
  const Timeline timeline = simulate(program, machine, Fidelity::Flow, Simulated::OneOfEach);
  double least = 1e9, most = 0;
  for (const GpuTime& gpu : gpu_times(timeline)) {
    const auto kernels = static_cast<double>(gpu.by_use[static_cast<std::size_t>(Use::Kernel)]);
    const std::int64_t alone = computing_alone(timeline, gpu.process, gpu.device);
    least = std::min(least, static_cast<double>(gpu.ns - alone) * 1e-9);
    most = std::max(most, kernels / static_cast<double>(gpu.ns));
  }
  const CriticalPath path = critical_path(timeline);
  const auto on_path = path.by_class[static_cast<std::size_t>(SpanClass::Kernel)];
  return {least, most, static_cast<double>(on_path) / static_cast<double>(path.ns)};
}

TEST(ExplainedTrainingSteps, GainNoMoreThanTheirGpusAreIdleAndCommunicate) {
  const Machine machine = load_machine("h100-nvswitch-8");
  for (const auto& [name, step] : plain_steps()) {
    const Program program = training::expand(step, training::Ranks::OneOfEach).program;
    const Explanation explanation = explain(program, machine, Simulated::OneOfEach);
    const auto numbers = run_in_children({[&] { return computing_of(program, machine); }});
    const Computing computing{numbers[0][0], numbers[0][1], numbers[0][2]};
    ASSERT_FALSE(explanation.gains.empty()) << name;
    for (const Gain& gain : explanation.gains) {
      EXPECT_GE(gain.gain, 0) << name << ": " << name_of(gain.cause);
      EXPECT_LE(gain.gain * explanation.seconds, computing.idle_or_communicating_s)
          << name << ": " << name_of(gain.cause);
      if (gain.simulated > 0) {  // what was simulated is no excuse for what is cut from it
        EXPECT_NEAR(gain.simulated, gain.seconds, 0.01 * gain.seconds)
            << name << ": " << name_of(gain.cause) << ": " << gain.bound;
      }
    }
    if (computing.most > 0.9) {
      EXPECT_GT(computing.on_path, computing.most - 0.05)
          << name << ": the path and the GPUs' table";
    }
  }
}

}  // namespace
}  // namespace foretrace::explain
