// Which parameters of the catalogue NCCL's times are made of, by name. A collective without a row
// does not compile: see params.cc.
#pragma once

#include <optional>

#include "models/machine/machine.h"
#include "models/nccl/rules/types.h"
#include "scenarios/program/ops.h"

namespace foretrace::nccl {

/// A ring's, or a chain's, with one protocol.
struct RingParams {
  Param base;                         ///< fixed part of the kernel's time
  Param step;                         ///< of each step of a pass
  Param slope;                        ///< LL: one round of all threads; else the drift
  std::optional<Param> power;         ///< Simple: how the drift grows with the bytes; else by 1
  std::optional<Param> channel_rate;  ///< Simple and LL128
};
RingParams ring_params(CollectiveKind kind, Protocol protocol);
/// Simple: one channel of a chain's last rank, on the last step.
std::optional<Param> last_step_param(CollectiveKind kind, Protocol protocol);

/// Of transfers between pairs of ranks on one node.
struct PairParams {
  Param ll_base;
  Param ll_rate;  ///< of one channel
  Param simple_base;
  Param simple_rate;   ///< of one channel
  Param simple_last;   ///< the receiver's copy of the last step
  Param port_share;    ///< of what NCCL gets through a port
  Param simple_drift;  ///< takes the place of the two rates where the machine has it
};

/// Transfers of equal size with other ranks at once.
enum class Exchange : std::uint8_t {
  SendRecv,  ///< every rank sends and receives at once
  AllToAll,
  Gather,
  Scatter,
  OneWay  ///< a send alone: nothing comes back through the same channels
};
PairParams pair_params(Exchange exchange);

/// all_to_all, gather or scatter.
Exchange exchange_of(CollectiveKind kind);

/// One parameter for each protocol.
struct ProtocolParams {
  Param ll, ll128, simple;
  constexpr Param operator[](Protocol protocol) const {
    if (protocol == Protocol::LL) return ll;
    return protocol == Protocol::LL128 ? ll128 : simple;
  }
};

inline constexpr ProtocolParams kTreeBase{Param::NcclTreeLlBase, Param::NcclTreeLl128Base,
                                          Param::NcclTreeSimpleBase};
inline constexpr ProtocolParams kTreeStep{Param::NcclTreeLlStep, Param::NcclTreeLl128Step,
                                          Param::NcclTreeSimpleStep};
/// A hop between nodes.
inline constexpr ProtocolParams kNetRingStep{Param::NcclNetRingLlStep, Param::NcclNetRingLl128Step,
                                             Param::NcclNetRingSimpleStep};
inline constexpr ProtocolParams kNetTreeStep{Param::NcclNetTreeLlStep, Param::NcclNetTreeLl128Step,
                                             Param::NcclNetTreeSimpleStep};

/// What a node's proxies send with flags; Simple is limited by the NICs alone.
struct FlagRateParams {
  Param ll, ll128;
};
inline constexpr FlagRateParams kNetRingRate{Param::NcclNetRingLlRate, Param::NcclNetRingLl128Rate};
inline constexpr FlagRateParams kNetTreeRate{Param::NcclNetTreeLlRate, Param::NcclNetTreeLl128Rate};

}  // namespace foretrace::nccl
