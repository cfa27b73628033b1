// Scenarios of captured kernels: what a what-if and another GPU leave as it was.
#pragma once

#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "scenarios/program/program.h"

namespace foretrace {

/// Lines for stderr: how much of the kernels' time `machine`'s what-ifs change, and that it is of
/// another GPU. Empty for programs that were not captured.
std::vector<std::string> captured_notes(const Program& program, const Machine& machine,
                                        bool has_what_ifs);

}  // namespace foretrace
