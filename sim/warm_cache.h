// What a pass finds in the host's cache because the passes before it read it.
#pragma once

#include "models/machine.h"
#include "scenarios/program.h"
#include "sim/world.h"

namespace foretrace::sim {

/// Sets Process::host_reads as the warm-up left them: host memory that a pass only reads stays in
/// the cache from pass to pass, if all host memory that the process touches in one fits there.
void warm_cache(const Program& program, const Machine& machine, Process& process);

}  // namespace foretrace::sim
