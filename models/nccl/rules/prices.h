// NCCL's price table (nccl src/graph/tuning.cc, ncclTopoTuneModel).
#pragma once

#include "models/nccl/rules/tuning.h"

namespace foretrace::nccl {

/// Fills bandwidth and latency of `tuning` from everything else in it.
void set_prices(Tuning& tuning);

}  // namespace foretrace::nccl
