// How far the parameters behind a predicted NCCL time can be trusted.
#pragma once

#include <optional>

#include "models/machine/machine.h"
#include "models/nccl/rules/types.h"
#include "scenarios/program/ops.h"

namespace foretrace::nccl {

struct Trust {
  ParameterClass least = ParameterClass::Fit;  ///< of all parameters that the time rests on
  double spread = 0;                           ///< relative, one sigma: the largest of them
};

/// The steps, slopes and bandwidths of this algorithm and protocol; `kind` empty: send/recv.
/// Empty where NCCL's own price stands in for the time.
std::optional<Trust> trust_of(const Machine& machine, std::optional<CollectiveKind> kind,
                              Algorithm algorithm, Protocol protocol, std::uint32_t nodes);

}  // namespace foretrace::nccl
