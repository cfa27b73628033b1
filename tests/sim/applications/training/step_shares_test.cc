// What ranks do in a step: whoever comes first to a collective waits, and does not communicate.
#include "sim/applications/training/step_shares.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "scenarios/read/scenario.h"
#include "scenarios/base/text/data_directory.h"
#include "scenarios/training_step/expand.h"
#include "sim/engine/children.h"
#include "sim/simulate.h"
#include "sim/applications/training/measured_steps.h"
#include "sim/applications/training/predict_step.h"
#include "sim/applications/training/usage.h"
#include "tests/scenarios/training_step/steps.h"
#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

using sim::StepShares;

void expect_shares(const StepShares& of, double computing, double communication, double waiting,
                   double idle) {
  EXPECT_NEAR(of.computing, computing, 1e-9);
  EXPECT_NEAR(of.communication, communication, 1e-9);
  EXPECT_NEAR(of.waiting, waiting, 1e-9);
  EXPECT_NEAR(of.idle, idle, 1e-9);
}

/// Two ranks, a stream for kernels and one for NCCL each.
Timeline two_ranks() {
  Timeline t;
  t.ops.resize(2);
  t.ops[0].kind = "library_kernel";
  t.ops[1].kind = "nccl_all_reduce";
  for (const std::uint32_t process : {0u, 1u}) {
    for (const char* const stream : {"compute", "comm"}) {
      t.lanes.push_back({LaneKind::Stream, 0, process, 0, stream});
    }
  }
  return t;
}

Span busy_span(std::uint32_t op, std::uint32_t lane, std::int64_t begin, std::int64_t end) {
  return {op, lane, 0, begin, end, 1, 0};
}

TEST(StepShares, TellCommunicationFromWaitingInsideAKernel) {
  Timeline t = two_ranks();
  t.spans = {busy_span(0, 0, 0, 10), busy_span(1, 1, 10, 50), busy_span(0, 2, 30, 45),
             busy_span(1, 3, 45, 50)};
  t.waits = {{1, 10, 45}};
  const auto shares = sim::shares_in(t, {{0, {0, 50}}, {1, {0, 50}}});
  expect_shares(shares.at(0), 0.2, 0.1, 0.7, 0);
  expect_shares(shares.at(1), 0.3, 0.1, 0, 0.6);
  expect_shares(sim::mean_of(shares), 0.25, 0.1, 0.35, 0.3);
}

TEST(StepShares, DoNotCountWhatKernelsHide) {
  Timeline t = two_ranks();
  t.spans = {busy_span(1, 1, 0, 80), busy_span(0, 0, 10, 60)};
  t.waits = {{1, 0, 40}};
  expect_shares(sim::shares_in(t, {{0, {0, 100}}}).at(0), 0.5, 0.2, 0.1, 0.2);
}

TEST(StepShares, EndWithTheirWindow) {
  Timeline t = two_ranks();
  t.spans = {busy_span(1, 1, 0, 80), busy_span(0, 0, 80, 200)};
  t.waits = {{1, 0, 60}};
  expect_shares(sim::shares_in(t, {{0, {50, 100}}}).at(0), 0.4, 0.4, 0.2, 0);
}

TEST(StepShares, OfABubbleArePartOfWhatIsExposed) {
  Timeline t = two_ranks();
  t.ops.push_back(t.ops[1]);
  t.ops[1].kind = "nccl_recv";
  t.spans = {busy_span(0, 0, 0, 20), busy_span(1, 1, 10, 60), busy_span(2, 0, 50, 70)};
  const StepShares of = sim::shares_in(t, {{0, {0, 100}}}).at(0);
  expect_shares(of, 0.2, 0.5, 0, 0.3);
  EXPECT_NEAR(of.bubble, 0.3, 1e-9) << "from 20 to 50 only a receive runs";
  EXPECT_NEAR(sim::one_behind_the_other(of, 1, {}, 2).bubble, 0.1, 1e-9);
}

TEST(StepShares, OfOneTimeBehindTheOtherAreWeightedByThem) {
  expect_shares(sim::one_behind_the_other({0.4, 0.2, 0.2, 0.2}, 1, {0.8, 0, 0, 0.2}, 3), 0.7, 0.05,
                0.05, 0.2);
}

const std::string kLate = R"(
streams: {s: {flags: non_blocking}}
communicators: {world: {members: all_devices, init: rank}}
processes: 2
buffers: {x: {memory: device, size: 1MB}}
threads:
  main:
    - host_compute: {duration: 100us * process}
)";

TEST(RankWaits, AreOfWhoBeganUntilTheLastDid) {
  const Timeline t = predict(
      kLate +
      "    - nccl_all_reduce: {id: ar, comm: world, stream: s, buffer: x, type: float32}\n");
  const auto spans = device_spans(t, "ar");
  ASSERT_EQ(t.waits.size(), 1u);
  EXPECT_EQ(t.waits[0], (RankWait{spans[0].lane, spans[0].begin_ns, spans[1].begin_ns}));
}

/// A sender and its receiver, one of which is late.
std::vector<RankWait> waits_of_pair(int late) {
  return predict(fmt::format(R"(
streams: {{s: {{flags: non_blocking}}}}
communicators: {{world: {{members: all_devices, init: rank}}}}
processes: 2
buffers: {{x: {{memory: device, size: 1MB}}}}
threads:
  sender:
    processes: [0]
    ops:
      - host_compute: {{duration: {}us}}
      - nccl_send: {{comm: world, stream: s, buffer: x, size: 1000B, type: int8, peer: 1}}
  receiver:
    processes: [1]
    ops:
      - host_compute: {{duration: {}us}}
      - nccl_recv: {{comm: world, stream: s, buffer: x, size: 1000B, type: int8, peer: 0}}
)",
                             late == 0 ? 100 : 0, late == 1 ? 100 : 0))
      .waits;
}

TEST(RankWaits, AreOfAReceiver) { EXPECT_EQ(waits_of_pair(0).size(), 1u); }

TEST(RankWaits, AreNotOfASenderWhoseBytesFitIntoTheBuffers) {
  EXPECT_EQ(waits_of_pair(1).size(), 0u);
}

training::TrainingStep pipeline_of_two() {
  training::TrainingStep step;
  step.model = training::llama(4, 4096, 32, 8, 14336, 32000);
  step.sequence = 2048;
  step.pipeline = 2;
  step.passes = 8;
  step.steps = 3;
  return step;
}

TEST(StepShares, OfAPipelinesFirstStageAreMostlyWaitingForTheLast) {
  const auto both = run_in_children({[] {
    return sim::numbers_of(
        sim::predict_step(pipeline_of_two(), load_machine("h200-nvswitch-8"), "a"));
  }});
  const auto predicted = sim::step_from(both[0]);
  ASSERT_EQ(predicted->of_process.size(), 2u);
  const StepShares first = predicted->of_rank(0), last = predicted->of_rank(1);
  EXPECT_GT(first.waiting, 0.2);
  EXPECT_LT(last.waiting, first.waiting / 2);
  EXPECT_LT(first.communication, 0.02) << "activations of 16 MB";
  for (const StepShares& of : {first, last, sim::mean_of(predicted->of_process)}) {
    EXPECT_NEAR(of.computing + of.communication + of.waiting + of.idle, 1, 1e-9);
  }
  EXPECT_EQ(predicted->of_rank(5).waiting, first.waiting) << "not simulated: as the first one";
}

TEST(StepShares, AreTheSameWhereOneOfEachKindIsSimulated) {
  training::TrainingStep step = pipeline_of_two();
  step.data = 4;
  step.sharding = training::Sharding::Zero1;
  step.steps = 1;
  const auto mean = [step](training::Ranks ranks) {
    return [step, ranks] {
      const auto usage = sim::usage_of(simulate(
          training::expand(step, ranks).program, load_machine("h100-nvswitch-8"), Fidelity::Flow,
          ranks == training::Ranks::All ? Simulated::All : Simulated::OneOfEach));
      const StepShares of = sim::mean_of(usage->of_process);
      return std::vector<double>{of.computing, of.communication, of.waiting, of.idle};
    };
  };
  const auto both = run_in_children({mean(training::Ranks::All), mean(training::Ranks::OneOfEach)});
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(both[0][i], both[1][i], 1e-6) << i;
}

TEST(MeasuredSteps, HaveSharesWhereTheTracesOfAllRanksWereJoined) {
  std::size_t joined = 0;
  for (const sim::MeasuredStep& step : sim::read_measured_steps(
           data_directory() / "reports/measured/pytorch_steps/h200_x2/results.jsonl.gz")) {
    if (!step.shares) continue;
    ++joined;
    const StepShares& of = *step.shares;
    EXPECT_NEAR(of.computing + of.communication + of.waiting + of.idle, 1, 1e-4) << step.id;
    if (step.id != "tp_8b_4_layers_s4096_b1_sequence") continue;
    EXPECT_NEAR(of.communication, 0.041, 0.001) << "45 % of one rank's trace are NCCL's alone";
    EXPECT_NEAR(step.exposed, 0.45, 0.01);
  }
  EXPECT_EQ(joined, 4u);
}

}  // namespace
}  // namespace foretrace::test
