// What one NCCL operation costs on the GPUs: NCCL's own choice of algorithm, protocol and channels
// (nccl_tuning), and calibrated latencies and bandwidths for the time.
#pragma once

#include <cstdint>
#include <string>

#include "models/machine.h"
#include "models/nccl_tuning.h"

namespace foretrace {

/// One operation as its ranks run it once all of them have arrived: `latency`, then `wire_bytes`
/// through every NVLink port that takes part.
struct NcclCost {
  NcclChoice choice;
  Duration latency;
  Bytes wire_bytes;  ///< per port and direction, in units of the port's full bandwidth: a protocol
                     ///< that reaches half of it counts its bytes twice
};

/// `size` as in NcclCollective::size.
NcclCost collective_cost(const Machine& machine, CollectiveKind kind, Bytes size,
                         std::uint32_t ranks);

/// One send and its receive.
NcclCost send_recv_cost(const Machine& machine, Bytes size, std::uint32_t ranks);

}  // namespace foretrace
