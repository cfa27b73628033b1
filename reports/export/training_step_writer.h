// What a file's `training_step:` says, as JSON beside the program that it reads as:
// hw/pytorch/train.py runs it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scenarios/training_step/description.h"

namespace foretrace {

/// Every value of the description, defaults filled in: sizes in elements, batch sizes in sequences
/// of one process, words as in a scenario.
nlohmann::ordered_json training_step_json(const training::TrainingStep& step);

}  // namespace foretrace
