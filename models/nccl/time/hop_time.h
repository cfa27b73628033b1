// How long NCCL's operations take that do not stay on the NVLink ring of one node: trees, NVLS,
// rings through the host's memory, and everything between nodes. A latency for each hop on the
// longest way, by protocol, and the slowest of the resources that all bytes must pass.
#pragma once

#include <optional>

#include "models/machine/reading.h"
#include "models/nccl/time/terms.h"

namespace foretrace::nccl {

/// `bytes` is NCCL's nBytes. Empty where the machine file lacks the parameters, as for GPUs that
/// have NVLink and may not use it.
std::optional<Terms> hop_time(Reading& read, const Tuning& tuning, CollectiveKind kind,
                              const Choice& choice, Bytes bytes);

}  // namespace foretrace::nccl
