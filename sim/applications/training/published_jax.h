// Published steps of JAX: what XLA fuses, and which of a layer's results its frameworks keep.
#pragma once

#include <optional>
#include <string_view>

#include "scenarios/base/text/csv.h"
#include "scenarios/training_step/description.h"

namespace foretrace::sim {

/// "partial: save qkv,out,mlpwo", "minimal_flash ...": what recomputed layers keep. Empty where the
/// words name no policy of MaxText or Paxml.
std::optional<training::Kept> kept_by(std::string_view recompute);

/// Fills what XLA does to a step, and its recomputation.
void describe_jax(const CsvLine& line, training::TrainingStep& step);

}  // namespace foretrace::sim
