// Rings and chains on the NVLinks of one node, step by step, with times measured on this machine.
#pragma once

#include <optional>

#include "models/machine/reading.h"
#include "models/nccl/time/terms.h"

namespace foretrace::nccl {

/// Bytes through one port and direction for a vector of `bytes`: nccl-tests' bus factor.
double bus_bytes(CollectiveKind kind, double bytes, double ranks);

bool is_chain(CollectiveKind kind);

/// Ranks write straight into registered buffers, and the machine file knows what that takes.
bool is_direct(const Reading& read, const Choice& choice);

/// `bytes` is NCCL's nBytes; `links` is which part of a GPU's NVLinks leads to the ranks. Empty
/// where the choice is no ring, or the machine file has no times for it.
std::optional<Terms> ring_time(Reading& read, CollectiveKind kind, const Choice& choice,
                               Bytes bytes, std::uint32_t ranks, double links = 1);

/// LL: a channel's work on `bytes` in one step of a ring, beside the step's fixed part.
double ll_round_seconds(Reading& read, CollectiveKind kind, const Choice& choice, double bytes);

/// What drift and a channel's own rate add to the wire's time: the rate hardly shows until it is
/// the bottleneck.
double beyond_wire_seconds(Reading& read, double wire_seconds, double drift_seconds,
                           double limit_seconds);

}  // namespace foretrace::nccl
