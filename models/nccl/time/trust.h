// How far the parameters behind a predicted NCCL time can be trusted.
#pragma once

#include <optional>

#include "models/machine/machine.h"
#include "models/nccl/rules/types.h"
#include "scenarios/program/ops.h"

namespace foretrace {

struct NcclTrust {
  ParameterClass least = ParameterClass::Fit;  ///< of all parameters that the time rests on
  double spread = 0;                           ///< relative, one sigma: the largest of them
};

/// The steps, slopes and bandwidths of this algorithm and protocol; `kind` empty: send/recv.
/// Empty where NCCL's own price stands in for the time.
std::optional<NcclTrust> nccl_trust(const Machine& machine, std::optional<CollectiveKind> kind,
                                    NcclAlgorithm algorithm, NcclProtocol protocol,
                                    std::uint32_t nodes);

}  // namespace foretrace
