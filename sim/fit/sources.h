// Where a parameter comes from: which scenarios determine it, and which class it belongs to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/machine/machine.h"

namespace foretrace {

/// The first word of its key: "host", "gpu", "copy", "kernel", "gemm", "nccl", ...
std::string_view class_of(Param param);

/// Scenario files below scenarios/ whose measurement determines it; empty when none of ours does.
std::vector<std::string> scenarios_for(Param param);

/// "measure scenarios/calibration/memory.yaml" or what else there is to do.
std::string advice_for(Param param);

}  // namespace foretrace
