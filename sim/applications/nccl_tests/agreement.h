// What files of results say of the machine that they were measured on, against --machine.
#pragma once

#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "sim/applications/nccl_tests/log.h"

namespace foretrace {

/// A line for each kind of GPU that is not the machine's, with the machines that have it; one where
/// a run has more hosts than the machine file has nodes. Empty where all agree.
std::string contradictions(const std::vector<NcclTestsSample>& samples, const Machine& machine);

/// Hosts of one NVLink domain (NVL72) are one node to NCCL: on a machine whose node is such a
/// domain, a run has as few nodes as hold its ranks.
void in_domains(std::vector<NcclTestsSample>& samples, const Machine& machine);

}  // namespace foretrace
