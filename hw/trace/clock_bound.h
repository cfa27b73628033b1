// How far the times of two GPUs may be off against each other. CUPTI puts every GPU's stamps on
// the host's clock by interpolation; here a kernel is launched and waited for, so that the host's
// own clock brackets it, and the tightest of many brackets bounds the GPU's error from both sides.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/run/processes.h"
#include "hw/trace/activity_tracer.h"

namespace foretrace::hw {

/// One kernel as the host and as CUPTI saw it.
struct ClockBracket {
  int ordinal{};
  std::int64_t launched_ns{};  ///< host: before the launch
  std::int64_t begin_ns{};     ///< CUPTI
  std::int64_t end_ns{};       ///< CUPTI
  std::int64_t waited_ns{};    ///< host: after the synchronize
};

/// By how much a GPU's stamps may be too early or too late: a kernel cannot begin before it is
/// launched nor end after it was waited for.
struct ClockError {
  std::int64_t early_ns{};
  std::int64_t late_ns{};
};
ClockError clock_error(const std::vector<ClockBracket>& brackets, int ordinal);

/// The worst of several GPUs, in each direction.
ClockError worst(const std::vector<ClockError>& errors);

/// The largest possible error between any two clocks: GPUs, and the host's, which is exact.
inline std::int64_t bound_ns(const ClockError& worst) { return worst.early_ns + worst.late_ns; }

/// The same over all processes of all hosts; what hosts' clocks add is host_clocks.h's.
std::int64_t bound_over_processes(const Processes& processes, const ClockError& worst);

/// Launches the kernels, on every device of the process, under a tracer. The host's side only:
/// CUPTI's is filled in from `activities` afterwards.
std::vector<ClockBracket> launch_brackets(int first_ordinal, int devices);
void fill_brackets(std::vector<ClockBracket>& brackets,
                   const std::vector<DeviceActivity>& activities);

/// The operation that bracket kernels are marked with: no program has it.
inline constexpr std::uint32_t kBracketOp = (1U << 24) - 1;

}  // namespace foretrace::hw
