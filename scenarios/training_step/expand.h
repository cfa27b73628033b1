// A training step as a program of operations, as an ordinary scenario is.
#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/base/text/diagnostic.h"
#include "scenarios/program/program.h"
#include "scenarios/training_step/description.h"
#include "scenarios/training_step/memory.h"

namespace foretrace::training {

/// Which processes' threads are made. OneOfEach leaves out those that do the same at the same time
/// as one that is there (places.h): for Simulated::OneOfEach, which needs no others.
enum class Ranks : std::uint8_t { All, OneOfEach };

/// What follows from a description without knowing a machine.
struct Expansion {
  Program program;
  bool is_whole =
      true;  ///< else it has as many operations as most_operations(), and would have more
  /// Largest device memory of a process, by part: that of the stage that needs most.
  PartBytes memory{};
  std::vector<MemoryCurve> curves;  ///< of each kind of process that the program has
  std::int64_t parameters = 0;      ///< of the whole model
  double flops = 0;                 ///< model_flops()
  std::int64_t tokens = 0;          ///< of a step, over all processes
};

/// One rank of each kind has nothing twice: that large it is a deep pipeline, not a mistake.
constexpr std::uint32_t most_operations(Ranks ranks) {
  return ranks == Ranks::All ? 300'000 : 2'400'000;
}

/// The description is one that check() accepts. The region `step` runs `steps` times: the first
/// ones find a rested clock and idle streams, the last one is what training goes on with.
/// Name, environment, network and the like are those of `head`. All operations stand at `at`.
Expansion expand(const TrainingStep& step, Ranks ranks = Ranks::All, const Program& head = {},
                 const SourceSpot& at = {});

/// Expansion::memory alone, without a program: in milliseconds.
PartBytes peak_memory(const TrainingStep& step);
/// The same of one stage of the pipeline.
PartBytes peak_memory(const TrainingStep& step, std::int64_t stage);

/// Steps that the program has.
std::int64_t steps_of(const TrainingStep& step);

}  // namespace foretrace::training
