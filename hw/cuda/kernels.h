// The kernels of the harness: launch functions only, so that all other files stay plain C++.
// Every function launches on the current device and returns the launch's error code.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "hw/cuda/element.h"

namespace foretrace::hw {

/// How a spin kernel tells the time. The GPU's %globaltimer counts nanoseconds but on some GPUs
/// steps by a microsecond; then the SM's clock is used at the rate that was measured.
struct SpinClock {
  double cycles_per_ns = 0;  ///< 0: %globaltimer
};

/// Measures the step of %globaltimer and, if it is coarse, the SM's clock rate. Synchronizes.
cudaError_t measure_spin_clock(SpinClock& clock, std::int64_t& globaltimer_step_ns);

/// One SM's clock for 20 us: cycles and the nanoseconds they took, into two numbers that the device
/// can write.
cudaError_t launch_count_cycles(cudaStream_t stream, std::int64_t* cycles_and_ns);

/// What the launches need to know of the current device; asked for once, so that launches make no
/// other CUDA call than the launch.
struct DeviceLimits {
  unsigned sm_count{};
  std::size_t shared_bytes_per_block{};
};

/// Reads the limits and lets the spin kernel take a whole SM's shared memory. Per device, once.
cudaError_t prepare_kernels(DeviceLimits& limits);

/// `blocks` thread blocks, each alone on its SM: a block asks for all shared memory that one block
/// may have, and from compute capability 8.0 on every block needs 1 KiB of it (CUDA C++
/// Programming Guide, 'Shared Memory'), so no second block of any kernel fits beside it.
cudaError_t launch_spin(cudaStream_t stream, const DeviceLimits& limits, SpinClock clock,
                        std::int64_t duration_ns, unsigned blocks);

/// dst = random (no source), max(a, 0) (one), a + b (two). Buffers are 16-byte aligned.
cudaError_t launch_elementwise(cudaStream_t stream, Element type, const void* a, const void* b,
                               void* dst, std::size_t bytes);

/// What launch_reduction needs beside its operands: zeroed once, reused by later launches of the
/// same stream.
inline constexpr std::size_t kReductionScratchBytes = 32768;

/// dst[0] = all elements of src combined.
cudaError_t launch_reduction(cudaStream_t stream, const DeviceLimits& limits, Element type,
                             Combine combine, const void* src, void* dst, std::size_t bytes,
                             void* scratch);

/// One thread stores to an address that is not mapped: the context is lost.
cudaError_t launch_fault(cudaStream_t stream);
/// Loads that kernel's code, which else its first launch does.
cudaError_t load_fault_kernel();

enum class Distribution : std::uint8_t { Uniform, Normal };
/// Random numbers, uniform in [0, 1) or of the standard normal distribution; integers 0 ... 3.
cudaError_t launch_random_fill(cudaStream_t stream, Element type, void* dst, std::size_t bytes,
                               std::uint32_t seed,
                               Distribution distribution = Distribution::Uniform);

}  // namespace foretrace::hw
