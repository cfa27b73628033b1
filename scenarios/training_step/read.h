// The block `training_step:` of a scenario.
#pragma once

#include <string>

#include "scenarios/architecture/config.h"
#include "scenarios/read/reader.h"
#include "scenarios/training_step/description.h"

namespace foretrace::training {

/// All mistakes at once go to the reader's problems: unknown words, missing sizes, degrees that do
/// not divide. The program's processes and nodes are known.
TrainingStep read_training_step(Reader& reader, const YamlNode& node);

/// A shipped architecture's name, a config.json beside the scenario, or sizes.
Architecture read_model(Reader& reader, const YamlNode& node);

/// Errors for layouts that do not fit the model, each with what would. `node` is the block.
void check(Reader& reader, const TrainingStep& step, const YamlNode& node);

}  // namespace foretrace::training
