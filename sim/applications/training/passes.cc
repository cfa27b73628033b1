#include "sim/applications/training/passes.h"

#include <algorithm>
#include <vector>

#include "scenarios/program/program_walk.h"

namespace foretrace::sim {
namespace {

struct LoopProduct {
  std::uint32_t op = 0, process = 0;
};

/// The first product of the loop of passes that runs most often: in a pipeline that of the last
/// stage, which is ahead of nobody. One expert's product after the other is a loop of one pass.
std::optional<LoopProduct> product_of_loop(const Program& program, const Timeline& timeline) {
  std::optional<LoopProduct> found;
  std::uint64_t most = 1;
  for_each_op(program, [&](const foretrace::HostThread& thread, const Op& op, Around around) {
    if (!std::holds_alternative<Gemm>(op.kind) || thread.processes.empty()) return;
    if (timeline.ops[op.id.value].label.starts_with("expert_")) return;
    const std::uint64_t times = executions(around.subspan(std::min<std::size_t>(1, around.size())));
    if (times <= most) return;
    most = times;
    found = {op.id.value, thread.processes.front()};
  });
  return found;
}

}  // namespace

training::TrainingStep with_fewer_passes(const training::TrainingStep& step) {
  constexpr std::int64_t kAlone = 6;   // without a pipeline: four of them alike
  constexpr std::int64_t kLeast = 16;  // for short pipelines
  constexpr std::int64_t kSteady = 8;  // beyond those that fill a pipeline
  constexpr std::int64_t kTurns = 6;   // of interleaved stages: three of them a loop
  training::TrainingStep fewer = step;
  if (step.schedule == training::Schedule::GPipe && step.pipeline > 1) return fewer;
  fewer.passes =
      std::min(step.passes, step.chunks > 1      ? kTurns * step.pipeline
                            : step.pipeline == 1 ? kAlone
                                                 : std::max(kLeast, step.pipeline + kSteady));
  fewer.steps = training::steps_of(step);
  return fewer;
}

std::int64_t passes_of_turn(const training::TrainingStep& step) {
  return step.chunks > 1 ? step.pipeline : 1;
}

StepUsage SteadyStep::with_more(double more) const {
  StepUsage all = simulated;
  all.seconds = seconds + more * turn;
  for (auto& [process, shares] : all.of_process) {
    shares = one_behind_the_other(shares, seconds, turns.of_process.at(process), more * turn);
  }
  return all;
}

std::optional<SteadyStep> steady_step(const StepUsage& usage, const Timeline& timeline,
                                      const Program& program) {
  const auto product = product_of_loop(program, timeline);
  if (!product) return std::nullopt;
  // Stages end their steps together: of those the one that the others wait for.
  constexpr double kTogether = 0.999;
  const auto last_stage = usage_of(timeline, product->process);
  const bool ends_last = last_stage && last_stage->seconds > kTogether * usage.seconds;
  const StepUsage& here = ends_last ? *last_stage : usage;
  const std::int64_t step_begin = last_stage ? last_stage->begin_ns : usage.begin_ns;
  std::vector<std::int64_t> begins;
  for (const Span& span : timeline.spans) {
    const Lane& lane = timeline.lanes[span.lane];
    const bool is_on_device = lane.process == product->process && lane.device != kNoDevice;
    if (span.op == product->op && is_on_device && span.begin_ns >= step_begin)
      begins.push_back(span.begin_ns);
  }
  if (begins.size() < 3) return std::nullopt;
  std::ranges::sort(begins);
  const std::int64_t from = begins[begins.size() / 2], to = begins.back();
  const auto count = static_cast<double>(begins.size() - 1 - begins.size() / 2);
  const StepUsage turns = usage_between(timeline, here.process, from, to);
  return SteadyStep{here, usage.seconds, turns, turns.seconds / count};
}

std::optional<StepUsage> with_more_turns(const StepUsage& usage, const Timeline& timeline,
                                         const Program& program, double turns) {
  const auto steady = steady_step(usage, timeline, program);
  return steady ? std::optional{steady->with_more(turns)} : std::nullopt;
}

}  // namespace foretrace::sim
