// What would determine a parameter: the scenarios in which it decides a region.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/machine/machine.h"

namespace foretrace {

/// The first word of its key: "host", "gpu", "copy", "kernel", "gemm", "nccl", ...
std::string_view class_of(Param param);

/// Files below scenarios/, by the parameters that decide a region of them.
using DeterminedBy = std::map<Param, std::vector<std::string>>;

/// Simulates all of scenarios/calibration and scenarios/nccl on `machine`, each in a child process;
/// those that it cannot run are left out. Call before any engine exists in this process. A
/// parameter that no span's share shows is looked for when it is `wanted`: one simulation for each
/// file.
DeterminedBy determined_by(const Machine& machine, std::span<const Param> wanted);

/// "scenarios/calibration/memory.yaml", or what else there is to do.
std::string advice_for(Param param, const DeterminedBy& determined);

}  // namespace foretrace
