// The block `training_step:` of a scenario, and models as Hugging Face's config.json describes
// them.
#pragma once

#include <string>

#include "scenarios/read/reader.h"
#include "scenarios/training_step/description.h"

namespace foretrace::training {

/// All mistakes at once go to the reader's problems: unknown words, missing sizes, degrees that do
/// not divide. The program's processes and nodes are known.
TrainingStep read_training_step(Reader& reader, const YamlNode& node);

/// A decoder from the text of a config.json: Llama, Mistral, Mixtral, Qwen2, Qwen3, GPT-2 and what
/// is alike.
/// `at` is where the scenario names it; mistakes are reported there.
Architecture read_config(Reader& reader, const YamlNode& at, const std::string& text,
                         const std::string& file);

/// Errors for layouts that do not fit the model, each with what would. `node` is the block.
void check(Reader& reader, const TrainingStep& step, const YamlNode& node);

}  // namespace foretrace::training
