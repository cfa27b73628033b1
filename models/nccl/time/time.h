// How long NCCL's kernels take once all ranks have arrived, alone on the machine: what a ring or a
// chain must do step by step, with times measured on this machine. See cost.h for what of it
// is traffic on the ports.
#pragma once

#include <optional>

#include "models/machine/machine.h"
#include "models/nccl/rules/tuning.h"
#include "scenarios/program/ops.h"

namespace foretrace::nccl {

// Payload of one step of a channel's buffer, in bytes (nccl src/include/device.h).
inline constexpr double kLlStep = 32.0 * 1024;  ///< 64 KiB, half of it flags
inline constexpr double kSimpleStep = 512.0 * 1024;

/// A time on the GPUs, of which `wire` bytes through every port take their part; and its terms, in
/// seconds, for whoever runs the operation slice by slice (slices.h).
struct Time {
  double seconds = 0;
  double wire_bytes = 0;  ///< per port and direction
  double fixed = 0;       ///< before the first data leave; over several nodes: and of all hops
  double step = 0;        ///< what shows of each step; in a chain, of each rank behind the first
  double ports = 0;       ///< send/recv: of a port for all peers, flags included
  double channel = 0;  ///< a channel's work on all its data: LL rounds of a chain, what the drift
                       ///< and its own rate add to the wire, send/recv
  double drift = 0;    ///< of a ring or chain with Simple or LL128: beyond the wire
  double rate = 0;     ///< the same: of a channel, if nothing but its own rate held it up
};

/// Where a ring's numbers stand in the catalogue. `slope` is LL's round, else the drift; only
/// Simple's drift has a power.
struct RingParams {
  Param base, step, slope, power, rate;
};
RingParams ring_params(CollectiveKind kind, Protocol protocol);

/// Bytes through one port and direction: nccl-tests' bus factor.
double bus_bytes(CollectiveKind kind, double bytes, double ranks);

/// What a sum of two bottlenecks that share their load takes: neither hides the other completely.
inline constexpr double kBothPower = 3.5;
double both(double one, double other, double power = kBothPower);

/// What drift and a channel's own rate add to the wire's time: the rate hardly shows until it is
/// the bottleneck.
double beyond_wire(double wire, double drift, double rate);

/// A collective of NCCL's by ring, with this many channels and threads; `bytes` is NCCL's nBytes.
/// Empty where the machine file has no times for it: NCCL's own price stands in.
std::optional<Time> ring_time(const Machine& machine, CollectiveKind kind, const Choice& choice,
                              double bytes, double ranks);

/// LL: a channel's work on `bytes` in one step of a ring, beside the step's fixed part.
double ll_work(const Machine& machine, CollectiveKind kind, const Choice& choice, double bytes);

/// Transfers of `bytes` each with `peers` other ranks at once, `choice.channels` channels for each.
enum class Exchange : std::uint8_t {
  SendRecv,  ///< every rank sends and receives at once
  AllToAll,
  Gather,
  Scatter,
  OneWay  ///< a send alone: nothing comes back through the same channels
};
std::optional<Time> exchange_time(const Machine& machine, Exchange exchange, const Choice& choice,
                                  double bytes, double peers);

}  // namespace foretrace::nccl
