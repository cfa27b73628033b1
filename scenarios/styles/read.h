// `code:` of a training step: the description's sizes in somebody's code.
#pragma once

#include "scenarios/captured/expand.h"
#include "scenarios/read/reader.h"
#include "scenarios/training_step/description.h"

namespace foretrace::styles {

/// The step as a capture of `step.code` would have it. What that code's templates do not have is
/// reported where `node`, the block, says it; an empty step is returned then.
captured::CapturedStep captured_step(Reader& reader, const training::TrainingStep& step,
                                     const YamlNode& node);

}  // namespace foretrace::styles
