// Kernels of libraries that are no products, and the framework's own time on the host. A roofline
// with an efficiency of its own for each kind: a fixed part, and bytes or flops over what such
// kernels reach. The parameters are fitted to profiled training steps (sim/applications/training).
#pragma once

#include "models/cost/kernel.h"
#include "scenarios/program/captured_shape.h"
#include "scenarios/program/ops.h"

namespace foretrace::kernels {
struct Asked;
}

namespace foretrace::cost {

/// A library's kernel as an operation has it.
struct LibraryWork {
  KernelKind kernel = KernelKind::Pointwise;
  double flops = 0;
  double bytes = 0;  ///< read and written
  double width = 0;  ///< of attention's heads, of a norm's rows; elements, 0: not said
  CapturedShape captured{};
  friend auto operator<=>(const LibraryWork&, const LibraryWork&) = default;
};

/// A kernel that a capture saw: the factor of the table of measured kernels times the plain time of
/// this machine's memory bandwidth and peak.
KernelCost captured_cost(Reading& read, const kernels::Asked& asked);

/// Attention is bound by arithmetic and follows the SMs' clock, all others by device memory, whose
/// loads in flight follow it in part.
KernelCost library_cost(Reading& read, const LibraryWork& work);

/// Where nobody measured the GPU's own attention, and decoding on all of them (attention.h).
bool attention_is_by_facts(Reading& read, const LibraryWork& work);

/// So many calls of one kind, with calls of CUDA that only ask, in a run of so many processes.
struct FrameworkCalls {
  FrameworkWork work{};
  std::uint32_t count = 1;
  std::uint32_t processes = 1;
  std::uint32_t queries = 0;
  std::uint32_t loop_us = 0;  ///< of captured work: the reference loop where it was captured
  friend auto operator<=>(const FrameworkCalls&, const FrameworkCalls&) = default;
};
/// In the slowest of the processes. Captured work is in parts of the loop of the host that captured
/// it: hosts differ by less than their loops, by the power `host.loop_power`.
Duration framework_time(Reading& read, const FrameworkCalls& calls);

}  // namespace foretrace::cost
