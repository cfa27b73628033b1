#include "sim/applications/plan/predict.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "scenarios/base/text/errors.h"
#include "scenarios/read/scenario.h"
#include "sim/applications/training/passes.h"
#include "sim/applications/training/step_band.h"
#include "sim/applications/training/usage.h"
#include "sim/simulate.h"

namespace foretrace::plan {
namespace {

constexpr const char* kFile = "plan";

}  // namespace

std::optional<Fit> fit_of(const Question& question, const Layout& layout) {
  try {
    const auto step = read_training_step(scenario_text(question, layout), kFile);
    FORETRACE_CHECK(step.has_value(), "a layout's scenario has a training step");
    const auto verdict = sim::memory_verdict(training::peak_memory(*step), question.machine);
    return Fit{verdict.bytes, verdict.fits, verdict.is_tight};
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

std::string why_refused(const Question& question, const Layout& layout) {
  try {
    static_cast<void>(read_training_step(scenario_text(question, layout), kFile));
    return {};
  } catch (const UsageError& error) {
    const std::string text = error.what(), mark = "error: ";
    const std::size_t begin = text.find(mark) + mark.size();
    return text.substr(begin, text.find('\n', begin) - begin);
  }
}

std::int64_t settled_passes(const Layout& layout) {
  constexpr std::int64_t kTurns = 6;  // of interleaved stages (sim/applications/training/passes.cc)
  return layout.interleaved > 1 ? kTurns * layout.pipeline : layout.pipeline + 4;
}

Trial trial_of(const Layout& layout, const training::TrainingStep& step) {
  Program head;
  head.name = short_name(layout);
  head.file = kFile;
  auto expansion = training::expand(step, training::Ranks::OneOfEach, head);
  if (!expansion.is_whole) throw UsageError{"a step of too many operations"};
  return {layout, step.passes, std::move(expansion.program)};
}

Prediction predict(const Machine& given, Trial trial, std::optional<explain::Cause> without,
                   Says says) {
  Machine machine = given;
  auto& [layout, passes, program] = trial;
  const bool all = passes == layout.passes;
  if (without && !explain::take_away(*without, program, machine)) {
    throw UsageError{"nothing to take away"};
  }
  const Timeline timeline = simulate(program, machine, Fidelity::Flow, Simulated::OneOfEach, says);
  if (without && timeline.outcome.kind != Outcome::Kind::Completed) {
    throw UsageError{"what is left does not end"};
  }
  const RegionSamples* const step = sim::last_step(timeline);
  if (step == nullptr) throw UsageError{"no step ended"};
  auto usage = sim::usage_of(timeline);
  FORETRACE_CHECK(usage.has_value(), "a step that ended has a usage");
  const double turn = layout.interleaved > 1 ? static_cast<double>(layout.pipeline) : 1;
  Prediction prediction;
  prediction.simulated_passes = passes;
  const auto steady = sim::steady_step(*usage, timeline, program);
  if (steady) prediction.next_pass = steady->turn / turn;
  if (!all) {
    FORETRACE_CHECK(steady.has_value(), "settled passes have a loop of three");
    usage = steady->with_more(static_cast<double>(layout.passes - passes) / turn);
  }
  prediction.seconds = usage->seconds;
  if (says == Says::Everything) {
    const sim::StepBand band = sim::step_band(machine, timeline, *step, *usage);
    prediction.low = band.low;
    prediction.high = band.high;
    prediction.rests_on = rests_of(timeline, machine);
  }
  const sim::StepShares mean = sim::mean_of(usage->of_process);
  prediction.computing = mean.computing;
  prediction.exposed = mean.exposed();
  prediction.idle = mean.idle;
  prediction.bubble = mean.bubble;
  prediction.spans = timeline.spans.size();
  return prediction;
}

std::vector<double> numbers_of(const Prediction& p) {
  std::vector<double> numbers{p.seconds,   p.low,
                              p.high,      p.computing,
                              p.exposed,   p.idle,
                              p.bubble,    static_cast<double>(p.simulated_passes),
                              p.next_pass, static_cast<double>(p.spans)};
  const std::vector<double> rests = foretrace::numbers_of(p.rests_on);
  numbers.insert(numbers.end(), rests.begin(), rests.end());
  return numbers;
}

std::optional<Prediction> prediction_from(const std::vector<double>& numbers) {
  constexpr std::size_t kOwn = 10;
  if (numbers.empty()) return std::nullopt;
  return Prediction{numbers[0],
                    numbers[1],
                    numbers[2],
                    numbers[3],
                    numbers[4],
                    numbers[5],
                    numbers[6],
                    static_cast<std::int64_t>(numbers[7]),
                    numbers[8],
                    static_cast<std::size_t>(numbers[9]),
                    rests_from(std::span{numbers}.subspan(kOwn))};
}

}  // namespace foretrace::plan
