// A training step as an ordinary scenario: text that can be read, changed, simulated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/training_step/description.h"
#include "scenarios/training_step/memory.h"

namespace foretrace::training {

/// What follows from a description without knowing a machine.
struct Expansion {
  std::string text;  ///< the scenario: everything below its `name:`
  /// Largest device memory of a process, by part: that of the stage that needs most.
  PartBytes memory{};
  std::vector<MemoryCurve> curves;  ///< of each kind of process that the text has
  std::int64_t parameters = 0;      ///< of the whole model
  double flops = 0;                 ///< model_flops()
  std::int64_t tokens = 0;          ///< of a step, over all processes
};

/// Which processes' threads are written. OneOfEach leaves out those that do the same at the same
/// time as one that is there (places.h): for Simulated::OneOfEach, which needs no others.
enum class Ranks : std::uint8_t { All, OneOfEach };

/// The description is one that check() accepts. The region `step` runs `steps` times: the first
/// ones find a rested clock and idle streams, the last one is what training goes on with.
Expansion expand(const TrainingStep& step, Ranks ranks = Ranks::All);

/// Expansion::memory alone, without a text: in milliseconds.
PartBytes peak_memory(const TrainingStep& step);

/// Steps that expand() writes.
std::int64_t steps_of(const TrainingStep& step);

}  // namespace foretrace::training
