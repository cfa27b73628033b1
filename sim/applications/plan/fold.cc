#include "sim/applications/plan/fold.h"

#include <algorithm>
#include <cmath>

#include "scenarios/training_step/expand.h"

namespace foretrace::plan {
namespace {

using training::TrainingStep;

/// How the layers of a chunk go on: `before` of them, then the same `period` again and again.
struct Pattern {
  std::int64_t before = 0, period = 1;
};

/// Empty where the layers have none, or where chunks would have different parts of it.
std::optional<Pattern> pattern_of(const TrainingStep& step) {
  const auto& kinds = step.model.kinds;
  if (kinds.empty()) return Pattern{};
  if (step.pipeline > 1) return std::nullopt;
  constexpr std::int64_t kMostBefore = 4, kLongest = 8;
  const auto size = static_cast<std::int64_t>(kinds.size());
  const auto at = [&](std::int64_t i) { return kinds[static_cast<std::size_t>(i)]; };
  for (std::int64_t period = 1; period <= kLongest; ++period) {
    for (std::int64_t before = 0; before <= kMostBefore; ++before) {
      bool repeats = true;
      for (std::int64_t i = before + period; repeats && i < size; ++i) {
        repeats = at(i) == at(i - period);
      }
      if (repeats) return Pattern{before, period};
    }
  }
  return std::nullopt;
}

/// Seconds, by its arithmetic: to compare steps by.
double rough_seconds(const TrainingStep& step) {
  constexpr double kUsual = 400e12;  // flop/s of a GPU, as steps_of() has it
  return training::model_flops(step) / static_cast<double>(step.processes()) / kUsual;
}

/// Steps of `few` behind which the clock is as it is in `whole`: the power limit lowers it in
/// tenths of a second (products.clock.load_time).
std::int64_t steps_like(const TrainingStep& whole, const TrainingStep& few) {
  constexpr double kSettled = 0.35;  // s, as steps_of() has it
  const std::int64_t steps = training::steps_of(whole);
  const double each = rough_seconds(few);
  if (steps == 1 && each > kSettled) return 1;
  const double before =
      steps == 1 ? kSettled
                 : std::min(kSettled, static_cast<double>(steps - 1) * rough_seconds(whole));
  return 1 + std::max<std::int64_t>(1, std::llround(std::ceil(before / each)));
}

/// `whole` with `removed` layers less in each chunk.
TrainingStep with_fewer_layers(const TrainingStep& whole, std::int64_t removed, Clock clock) {
  TrainingStep step = whole;
  step.model.layers -= removed * step.pipeline * step.chunks;
  if (!step.model.kinds.empty()) {
    step.model.kinds.resize(static_cast<std::size_t>(step.model.layers));
  }
  step.steps = clock == Clock::Settled ? steps_like(whole, step) : training::steps_of(whole);
  return step;
}

double layer_passes(const TrainingStep& step) {
  return static_cast<double>(step.model.layers * training::steps_of(step));
}

}  // namespace

Folded folded(const TrainingStep& step, Clock clock) {
  // Fewer are too few: with one and two, interleaved stages were 3 % off.
  constexpr std::int64_t kFewest = 2, kApart = 2;
  constexpr double kWorthIt = 0.8;  // of what the whole step costs to simulate
  const Folded whole{{step}, 0};
  const auto pattern = pattern_of(step);
  if (!pattern) return whole;
  const std::int64_t chunks = step.pipeline * step.chunks;
  const std::int64_t each = (step.model.layers + (step.ends_are_layers() ? 2 : 0)) / chunks;
  const std::int64_t period = pattern->period;
  const std::int64_t least = pattern->before + std::max(kFewest, period);
  const std::int64_t between = (kApart + period - 1) / period * period;
  const std::int64_t removed = (each - least) / period * period;
  if (removed <= between) return whole;
  const Folded few{
      {with_fewer_layers(step, removed, clock), with_fewer_layers(step, removed - between, clock)},
      static_cast<double>(removed) / static_cast<double>(between) - 1};
  const double cost = layer_passes(few.steps[0]) + layer_passes(few.steps[1]);
  return cost < kWorthIt * layer_passes(step) ? few : whole;
}

std::optional<Prediction> unfolded(const std::vector<std::optional<Prediction>>& predictions,
                                   double further) {
  if (!std::ranges::all_of(predictions, [](const auto& one) { return one.has_value(); })) {
    return std::nullopt;
  }
  Prediction all = *predictions.back();
  if (predictions.size() == 1) return all;
  const Prediction& first = *predictions.front();
  const Prediction second = all;
  const auto line = [&](double one, double other) { return other + (other - one) * further; };
  all.seconds = line(first.seconds, second.seconds);
  all.next_pass = line(first.next_pass, second.next_pass);
  const auto part = [&](double Prediction::*share) {
    const double seconds = line(first.*share * first.seconds, second.*share * second.seconds);
    return std::max(0.0, seconds / all.seconds);
  };
  for (double Prediction::*const share :
       {&Prediction::low, &Prediction::high, &Prediction::computing, &Prediction::exposed,
        &Prediction::idle, &Prediction::bubble}) {
    all.*share = part(share);
  }
  return all;
}

}  // namespace foretrace::plan
