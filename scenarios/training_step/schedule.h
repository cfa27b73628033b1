// The order of a step's micro-batches on one pipeline stage.
#pragma once

#include "scenarios/training_step/layouts.h"

namespace foretrace::training {

struct StageRole {
  std::int64_t stage = 0, stages = 1;
  std::int64_t distance = 1;  ///< processes from a stage to the next
};

/// All passes of a step, up to complete gradients.
void write_passes(const TrainingStep& step, const StageRole& role, Decoder& decoder, Layout& layout,
                  Writer& out);

}  // namespace foretrace::training
