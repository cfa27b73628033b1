#include "sim/cli/training/step_facts.h"

#include <fmt/format.h>

#include "models/machine/machine.h"
#include "reports/table/text_table.h"
#include "scenarios/base/text/errors.h"
#include "sim/applications/training/passes.h"
#include "sim/applications/training/usage.h"
#include "sim/cli/options.h"
#include "sim/cli/run_program.h"

namespace foretrace {
namespace {

/// A timeline's file does not say when another rank was waited for: with communication it is one
/// share here, and apart among what each GPU does.
std::string share_words_of(const sim::StepShares& mean) {
  const double exposed = mean.exposed();
  std::string limit = sim::limit_of(mean);
  if (limit != "computing" && limit != "the host thread") limit = "communication or other ranks";
  return fmt::format(
      "{:.0f} % computing, {:.0f} % communication and waiting for other ranks, {:.0f} % idle: "
      "limited by {}",
      100 * mean.computing, 100 * exposed, 100 * mean.idle, limit);
}

std::optional<ReportStep> facts_of(const LoadedTimeline& predicted) {
  const Timeline& timeline = predicted.timeline;
  if (timeline.origin.measured || timeline.serving) return std::nullopt;
  auto usage = sim::usage_of(timeline);
  if (!usage) return std::nullopt;
  const RunProgram run = program_of_run(predicted, {}, {});
  if (!run.training) return std::nullopt;
  const training::TrainingStep& step = run.training->step;
  if (run.left > 0) {
    usage = sim::with_more_turns(
        *usage, timeline, run.program,
        static_cast<double>(run.left) / static_cast<double>(sim::passes_of_turn(step)));
    if (!usage) return std::nullopt;
  }
  const Machine machine = load_machine(timeline.origin.machine);
  const training::Expansion& expansion = run.training->expansion;
  ReportStep facts;
  facts.figure = format_time(usage->seconds * 1e9);
  facts.words = "a step: " + sim::rate_words(step, expansion, machine, usage->seconds);
  facts.limit = share_words_of(sim::mean_of(usage->of_process));
  facts.memory = sim::memory_words(expansion, machine);
  if (run.left > 0) {
    facts.left = fmt::format("{} of {} micro-batches were simulated: the timeline has those",
                             step.passes - run.left, step.passes);
  }
  return facts;
}

}  // namespace

std::optional<ReportStep> step_facts(const LoadedTimeline& predicted) {
  try {
    return facts_of(predicted);
  } catch (const UsageError&) {  // no scenario, or another one; a machine that was changed
    return std::nullopt;
  }
}

}  // namespace foretrace
