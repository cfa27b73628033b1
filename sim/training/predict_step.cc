#include "sim/training/predict_step.h"

#include <fmt/format.h>

#include <stdexcept>

#include "scenarios/read/scenario.h"
#include "scenarios/text/errors.h"
#include "sim/simulate.h"
#include "sim/training/usage.h"

namespace foretrace::sim {

PredictedStep predict_step(const training::TrainingStep& step, const Machine& machine,
                           const std::string& name) {
  const training::Expansion expansion = training::expand(step);
  const MemoryVerdict verdict = memory_verdict(expansion, machine);
  PredictedStep predicted;
  predicted.peak = static_cast<std::int64_t>(verdict.bytes);
  predicted.fits = verdict.fits;
  if (!verdict.fits) return predicted;
  const std::string text = fmt::format("schema_version: 1\nname: {}\n{}", name, expansion.text);
  const auto read = read_scenario(text, name);
  if (!read) throw std::runtime_error{render(read.error(), text)};
  if (const auto usage =
          usage_of(simulate(read->program, machine, Fidelity::Flow, Simulated::OneOfEach))) {
    predicted.seconds = usage->seconds;
    predicted.computing = usage->computing;
    predicted.exposed = usage->exposed;
    predicted.idle = usage->idle;
  }
  return predicted;
}

std::vector<double> numbers_of(const PredictedStep& step) {
  return {
      step.seconds,         step.computing, step.exposed, step.idle, static_cast<double>(step.peak),
      step.fits ? 1.0 : 0.0};
}

std::optional<PredictedStep> step_from(const std::vector<double>& numbers) {
  if (numbers.empty()) return std::nullopt;
  return PredictedStep{
      numbers[0],     numbers[1], numbers[2], numbers[3], static_cast<std::int64_t>(numbers[4]),
      numbers[5] != 0};
}

}  // namespace foretrace::sim
