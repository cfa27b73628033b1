// A Program as the text of a scenario: what `foretrace print` writes of a step's expansion.
#pragma once

#include <string>

#include "scenarios/program/program.h"

namespace foretrace {

/// A scenario that reads as this program, with the same hash. Of what expansions make
/// (training_step/, captured/): without families, loop indices and CUDA calls that no step has.
/// Calls of torch.distributed are written as such.
std::string scenario_text(const Program& program);

/// The program's placement, fabric and faults as a scenario has them, a key a line; empty where it
/// has none.
std::string network_text(const Program& program);

}  // namespace foretrace
