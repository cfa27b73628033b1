// What a limit is called: by a machine's parts, or by what its file says of its nodes.
#pragma once

#include <string>

#include "models/machine/machine.h"

namespace foretrace {

/// "PCIe 4.0 x16", "NVLink 5 (NVL72)", "xGMI": what the GPUs of a node talk over.
std::string link_name(const Machine& machine);

/// "InfiniBand NDR"; "the network" of a machine file, which does not say what it is.
std::string network_name(const Machine& machine);

}  // namespace foretrace
