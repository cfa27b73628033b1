// What is carried over from one machine to another, and ratios that a generation of GPUs has in
// common.
#pragma once

#include <string>

#include "models/machine/machine.h"
#include "models/machine/parts/part.h"

namespace foretrace {

/// `from`'s parameter as another machine's, with this value.
ParamValue carried_from(const Machine& from, Param param, double value);

/// How far such a value is off, relative: what `foretrace accuracy --transfer` showed of its
/// family.
double carried_spread(Param param);

/// The parameters of models/machines/kinds, over those of `machine`.
void take_kind(const Part& gpu, Machine& machine);

}  // namespace foretrace
