// Who makes the calls: a CUDA program, or PyTorch, whose host time per call is several times as
// long.
#pragma once

#include <string>

#include "models/machine/machine.h"

namespace foretrace {

enum class Frontend : std::uint8_t { Cuda, PyTorch };

/// "cuda" or "pytorch". Throws UsageError.
Frontend parse_frontend(const std::string& text);

/// `machine` as this frontend's programs find it. Throws UsageError when the machine has no
/// measurements of the frontend.
Machine through_frontend(Machine machine, Frontend frontend);

}  // namespace foretrace
