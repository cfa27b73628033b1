// What a program asks of CUDA and NCCL by its environment, as far as only a machine's model can
// judge it.
#pragma once

#include "models/machine/machine.h"
#include "scenarios/program/program.h"
#include "scenarios/base/text/diagnostic.h"

namespace foretrace {

/// A warning for each variable that real GPUs follow and the simulator does not.
Diagnostics unmodelled_settings(const Program& program);

/// Collectives for which NCCL_ALGO and NCCL_PROTO leave no algorithm on this machine: NCCL would
/// return ncclInvalidUsage. Where ranks are on several nodes also the settings that make another
/// network of the machine's (NCCL_IB_DISABLE=1). Throws UsageError where NCCL's view of the machine
/// is not known.
Diagnostics refused_collectives(const Program& program, const Machine& machine);

}  // namespace foretrace
