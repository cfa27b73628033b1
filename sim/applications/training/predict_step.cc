#include "sim/applications/training/predict_step.h"

#include <utility>

#include "scenarios/training_step/expand.h"
#include "sim/applications/training/passes.h"
#include "sim/applications/training/step_band.h"
#include "sim/applications/training/usage.h"
#include "sim/simulate.h"

namespace foretrace::sim {

PredictedStep predict_step(const training::TrainingStep& step, const Machine& machine,
                           const std::string& name,
                           const std::map<std::string, std::string>& environment) {
  Program head;
  head.environment = environment;
  head.name = head.file = name;
  training::Expansion expansion = training::expand(step, training::Ranks::OneOfEach, head);
  const MemoryVerdict verdict = memory_verdict(expansion.memory, machine);
  PredictedStep predicted;
  predicted.peak = static_cast<std::int64_t>(verdict.bytes);
  predicted.fits = verdict.fits;
  const training::TrainingStep fewer = with_fewer_passes(step);
  const std::int64_t left = step.passes - fewer.passes;
  const double turns = static_cast<double>(left) / static_cast<double>(passes_of_turn(step));
  if (left > 0) expansion = training::expand(fewer, training::Ranks::OneOfEach, head);
  const Program& program = expansion.program;
  const Timeline timeline = simulate(program, machine, Fidelity::Flow, Simulated::OneOfEach);
  auto usage = usage_of(timeline);
  if (usage && left > 0) usage = with_more_turns(*usage, timeline, program, turns);
  if (usage) {
    const StepBand band = step_band(machine, timeline, *last_step(timeline), *usage);
    predicted.low = band.low;
    predicted.high = band.high;
    predicted.seconds = usage->seconds;
    predicted.of_process = std::move(usage->of_process);
  }
  return predicted;
}

StepShares PredictedStep::of_rank(std::uint32_t rank) const {
  if (of_process.empty()) return {};
  const auto found = of_process.find(rank);
  return (found == of_process.end() ? of_process.begin() : found)->second;
}

std::vector<double> numbers_of(const PredictedStep& step) {
  std::vector<double> numbers{step.seconds, static_cast<double>(step.peak), step.fits ? 1.0 : 0.0,
                              step.low, step.high};
  for (const auto& [process, of] : step.of_process) {
    numbers.insert(numbers.end(), {static_cast<double>(process), of.computing, of.communication,
                                   of.waiting, of.idle, of.bubble});
  }
  return numbers;
}

std::optional<PredictedStep> step_from(const std::vector<double>& numbers) {
  if (numbers.empty()) return std::nullopt;
  PredictedStep step{.seconds = numbers[0],
                     .low = numbers[3],
                     .high = numbers[4],
                     .peak = static_cast<std::int64_t>(numbers[1]),
                     .fits = numbers[2] != 0,
                     .of_process = {}};
  for (std::size_t i = 5; i + 6 <= numbers.size(); i += 6) {
    step.of_process[static_cast<std::uint32_t>(numbers[i])] = {
        numbers[i + 1], numbers[i + 2], numbers[i + 3], numbers[i + 4], numbers[i + 5]};
  }
  return step;
}

}  // namespace foretrace::sim
