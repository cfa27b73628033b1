// A machine file's GPUs as NCCL's search sees them.
#pragma once

#include <cstdint>

#include "models/machine/machine.h"
#include "models/nccl/rules/tuning.h"

namespace foretrace::nccl {

/// `ranks` GPUs, spread evenly over `nodes` nodes of `machine`: generation and network are those
/// that its kind of GPU is sold with, NVLinks as many as its nvlink.bandwidth needs. Throws
/// UsageError where that is not known, or where the ranks do not fit.
Topology topology_of(const Machine& machine, std::uint32_t ranks, std::uint32_t nodes);

/// Of one NIC, one direction.
double nic_bytes_per_second(const Machine& machine);

/// Rings as fitted from a log of this machine, in place of the search's.
std::optional<Rings> rings_of(const Machine& machine);

Tuning tuning_of(const Machine& machine, std::uint32_t ranks, std::uint32_t nodes = 1,
                 const Settings& settings = {});

}  // namespace foretrace::nccl
