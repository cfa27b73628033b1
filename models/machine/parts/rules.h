// The scaling rules of parameters: which fact of a GPU moves each (rules.def).
#pragma once

#include <optional>
#include <string_view>

#include "models/machine/machine.h"
#include "models/machine/parts/part.h"

namespace foretrace {

/// The fact that moves `param` from one GPU to another; empty where none does.
std::string_view fact_of(Param param);

/// `gpu`'s fact over `base`'s: "cache" stands for SMs times clock, "watts" for power over
/// arithmetic of the same chip, bf16 for fp16 where there is no bf16. A fact that either leaves out
/// follows from those that both have, or is the same.
double ratio_of(std::string_view fact, const Part& gpu, const Part& base);

/// What `param` of a machine with GPU `base` is on one with `gpu`.
double carried_value(Param param, double value, const Part& gpu, const Part& base);

}  // namespace foretrace
