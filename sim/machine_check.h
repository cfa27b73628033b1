// What an answer assumes of a machine that its file does not describe, and what its GPU cannot do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/machine/machine.h"
#include "scenarios/base/text/diagnostic.h"
#include "scenarios/program/program.h"

namespace foretrace {

/// A warning where a program on `nodes` nodes is predicted on a machine file that describes fewer,
/// or has no times of the network between them.
Diagnostics check_network(std::uint32_t nodes, const Machine& machine);

/// Why the machine's GPU has no bfloat16 arithmetic, which begins at compute capability 8.0; none
/// where it has, or where that is not known.
std::optional<std::string> why_no_bfloat16(const Machine& machine);

/// Why it cannot multiply numbers of this type, and what to do instead: its GPU has no such
/// arithmetic, or its file no rates of it. None where it can.
struct CannotMultiply {
  std::string why, hint;
};
std::optional<CannotMultiply> why_no_products(const Machine& machine, DataType type, Scales scales,
                                              bool tf32);

/// An error for the first matrix product of a type that the machine's GPU has no arithmetic for.
Diagnostics unsupported_types(const Program& program, const Machine& machine);

}  // namespace foretrace
