#include "sim/training/predict_step.h"

#include <fmt/format.h>

#include "scenarios/read/scenario.h"
#include "sim/simulate.h"
#include "sim/training/passes.h"
#include "sim/training/step_band.h"
#include "sim/training/usage.h"

namespace foretrace::sim {

PredictedStep predict_step(const training::TrainingStep& step, const Machine& machine,
                           const std::string& name) {
  const training::Expansion expansion = training::expand(step, training::Ranks::OneOfEach);
  const MemoryVerdict verdict = memory_verdict(expansion, machine);
  PredictedStep predicted;
  predicted.peak = static_cast<std::int64_t>(verdict.bytes);
  predicted.fits = verdict.fits;
  if (!verdict.fits) return predicted;
  const training::TrainingStep fewer = with_fewer_passes(step);
  const std::int64_t left = step.passes - fewer.passes;
  const double turns = static_cast<double>(left) / static_cast<double>(passes_of_turn(step));
  const std::string text = fmt::format(
      "schema_version: 1\nname: {}\n{}", name,
      left > 0 ? training::expand(fewer, training::Ranks::OneOfEach).text : expansion.text);
  const Program program = read_expanded(text, name);
  const Timeline timeline = simulate(program, machine, Fidelity::Flow, Simulated::OneOfEach);
  auto usage = usage_of(timeline);
  if (usage && left > 0) usage = with_more_turns(*usage, timeline, program, turns);
  if (usage) {
    const StepBand band = step_band(machine, timeline, *last_step(timeline), *usage);
    predicted.low = band.low;
    predicted.high = band.high;
    predicted.seconds = usage->seconds;
    predicted.computing = usage->computing;
    predicted.exposed = usage->exposed;
    predicted.idle = usage->idle;
  }
  return predicted;
}

std::vector<double> numbers_of(const PredictedStep& step) {
  return {step.seconds,
          step.computing,
          step.exposed,
          step.idle,
          static_cast<double>(step.peak),
          step.fits ? 1.0 : 0.0,
          step.low,
          step.high};
}

std::optional<PredictedStep> step_from(const std::vector<double>& numbers) {
  if (numbers.empty()) return std::nullopt;
  return PredictedStep{.seconds = numbers[0],
                       .low = numbers[6],
                       .high = numbers[7],
                       .computing = numbers[1],
                       .exposed = numbers[2],
                       .idle = numbers[3],
                       .peak = static_cast<std::int64_t>(numbers[4]),
                       .fits = numbers[5] != 0};
}

}  // namespace foretrace::sim
