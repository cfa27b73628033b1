// What of a machine follows from the facts of its GPU's part.
#pragma once

#include <bitset>

#include "models/machine/machine.h"
#include "models/machine/parts/part.h"

namespace foretrace {

/// The part of a machine's GPU. Throws UsageError where there is none.
Part gpu_of(const Machine& machine);

void set_fact(Machine& machine, Param param, double value, const Source& source);

/// Clock, power, and the peak in each precision: the GPU's, or the donor's by the ratio of facts
/// that both have; none where the hardware has no such thing. Those of `own` stay as they are.
void state_arithmetic(const Part& gpu, const Part& donor, Machine& machine,
                      const std::bitset<kParamCount>& own = {});

/// A machine's file has those facts, and the ratios that products take where they were not measured
/// (models/machines/kinds) unless its base has them, where its GPU has a part. `own`: what the file
/// gives itself.
void take_gpu_facts(Machine& machine, const std::bitset<kParamCount>& own);

}  // namespace foretrace
