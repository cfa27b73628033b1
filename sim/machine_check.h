// What an answer assumes of a machine that its file does not describe.
#pragma once

#include <cstdint>

#include "models/machine/machine.h"
#include "scenarios/program/program.h"
#include "scenarios/text/diagnostic.h"

namespace foretrace {

/// A warning where a program on `nodes` nodes is predicted on a machine file that describes fewer,
/// or has no times of the network between them.
Diagnostics check_network(std::uint32_t nodes, const Machine& machine);

/// A warning for the first matrix product of a type that the machine's GPU has no arithmetic for:
/// bfloat16 before compute capability 8.0.
Diagnostics unsupported_types(const Program& program, const Machine& machine);

}  // namespace foretrace
