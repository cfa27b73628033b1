// How long NCCL's operations take that do not stay on the NVLink ring of one node: trees, NVLS,
// rings through the host's memory, and everything between nodes. A latency for each hop on the
// longest way, by protocol, and the slowest of the resources that all bytes must pass.
#pragma once

#include <optional>

#include "models/nccl/rules/tuning.h"
#include "models/nccl/time/time.h"

namespace foretrace::nccl {

/// `bytes` is NCCL's nBytes. Empty where the machine file lacks the parameters, as for GPUs that
/// have NVLink and may not use it.
std::optional<Time> far_time(const Machine& machine, const Tuning& tuning, CollectiveKind kind,
                             const Choice& choice, double bytes);

/// Transfers of `bytes` with each peer where some or all (SendRecv, OneWay) are on other nodes.
std::optional<Time> far_exchange_time(const Machine& machine, const Tuning& tuning,
                                      Exchange exchange, double bytes);

}  // namespace foretrace::nccl
