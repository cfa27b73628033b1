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
    for (const auto& [process, shares] : usage->of_process) {
      predicted.of_process.push_back(shares);
    }
  }
  return predicted;
}

StepShares PredictedStep::mean() const {
  ProcessShares all;
  for (std::uint32_t process = 0; process < of_process.size(); ++process) {
    all[process] = of_process[process];
  }
  return mean_of(all);
}

StepShares PredictedStep::of_rank(std::size_t rank) const {
  if (of_process.empty()) return {};
  return of_process[rank < of_process.size() ? rank : 0];
}

std::vector<double> numbers_of(const PredictedStep& step) {
  std::vector<double> numbers{step.seconds,
                              step.computing,
                              step.exposed,
                              step.idle,
                              static_cast<double>(step.peak),
                              step.fits ? 1.0 : 0.0,
                              step.low,
                              step.high};
  for (const StepShares& of : step.of_process) {
    numbers.insert(numbers.end(), {of.computing, of.communication, of.waiting, of.idle});
  }
  return numbers;
}

std::optional<PredictedStep> step_from(const std::vector<double>& numbers) {
  if (numbers.empty()) return std::nullopt;
  PredictedStep step{.seconds = numbers[0],
                     .low = numbers[6],
                     .high = numbers[7],
                     .computing = numbers[1],
                     .exposed = numbers[2],
                     .idle = numbers[3],
                     .peak = static_cast<std::int64_t>(numbers[4]),
                     .fits = numbers[5] != 0};
  for (std::size_t i = 8; i + 4 <= numbers.size(); i += 4) {
    step.of_process.push_back({numbers[i], numbers[i + 1], numbers[i + 2], numbers[i + 3]});
  }
  return step;
}

}  // namespace foretrace::sim
