// A kernel that a capture saw, timed by the table of measured kernels.
#pragma once

#include "models/cost/kernel.h"
#include "models/kernels/kernel_table.h"

namespace foretrace::cost {

/// The table's factor times the plain time of this machine's memory bandwidth and peak.
KernelCost captured_cost(Reading& read, const kernels::Asked& asked);

}  // namespace foretrace::cost
