// What every command that measures does before it runs a scenario: reads it in all processes, and
// looks whether this machine can run it.
#pragma once

#include <string>
#include <vector>

#include "hw/run/processes.h"
#include "scenarios/program/program.h"
#include "scenarios/read/scenario.h"

namespace foretrace::hw {

/// --set name=value. Throws UsageError.
ParameterValues parse_assignments(const std::vector<std::string>& assignments);

/// Rank 0 reads, reports what is wrong, and sends the texts: the others may not see its disk. All
/// members of `world` call it together and throw alike.
Program load_program(const Processes& world, const std::string& file,
                     const ParameterValues& parameters);

/// This process's GPUs are there, and hold the program's buffers. Throws CannotHereError.
void check_devices(const Program& program, const Processes& processes);

}  // namespace foretrace::hw
