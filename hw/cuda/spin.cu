// See kernels.h.
#include "hw/cuda/kernels.h"

namespace foretrace::hw {
namespace {

__device__ std::uint64_t globaltimer_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__global__ void spin_kernel(std::int64_t duration_ns, double cycles_per_ns) {
  if (threadIdx.x != 0) return;
  if (cycles_per_ns == 0) {
    const std::uint64_t end = globaltimer_ns() + static_cast<std::uint64_t>(duration_ns);
    while (globaltimer_ns() < end) {
    }
  } else {
    const long long cycles =
        static_cast<long long>(static_cast<double>(duration_ns) * cycles_per_ns);
    const long long start = clock64();
    while (clock64() - start < cycles) {
    }
  }
}

/// result[0]: the smallest step seen; result[1]: cycles, result[2]: nanoseconds of one interval.
__global__ void observe_clocks(std::int64_t* result) {
  constexpr std::uint64_t kObserveNs = 2'000'000;
  std::uint64_t smallest = kObserveNs;
  const std::uint64_t first = globaltimer_ns();
  const long long first_cycle = clock64();
  std::uint64_t last = first;
  while (last - first < kObserveNs) {
    const std::uint64_t now = globaltimer_ns();
    if (now != last && now - last < smallest) smallest = now - last;
    last = now;
  }
  result[0] = static_cast<std::int64_t>(smallest);
  result[1] = clock64() - first_cycle;
  result[2] = static_cast<std::int64_t>(last - first);
}

/// From one step of the timer to another, so that its resolution does not count.
__global__ void count_cycles(std::int64_t* cycles_and_ns) {
  constexpr std::uint64_t kObserveNs = 20'000;
  const auto next_step = [](std::uint64_t last) {
    std::uint64_t now = globaltimer_ns();
    while (now == last) now = globaltimer_ns();
    return now;
  };
  const std::uint64_t first = next_step(globaltimer_ns());
  const long long first_cycle = clock64();
  std::uint64_t last = first;
  while (last - first < kObserveNs) last = next_step(last);
  cycles_and_ns[0] = clock64() - first_cycle;
  cycles_and_ns[1] = static_cast<std::int64_t>(last - first);
}

}  // namespace

cudaError_t measure_spin_clock(SpinClock& clock, std::int64_t& globaltimer_step_ns) {
  /// Half a step is the spin's error; above this the SM's clock is the better one.
  constexpr std::int64_t kFineStepNs = 100;
  std::int64_t* observed = nullptr;
  cudaError_t error = cudaMalloc(reinterpret_cast<void**>(&observed), 3 * sizeof(std::int64_t));
  if (error != cudaSuccess) return error;
  std::int64_t result[3] = {};
  void* arguments[] = {&observed};
  error = cudaLaunchKernel(reinterpret_cast<const void*>(&observe_clocks), dim3(1), dim3(1),
                           arguments, 0, cudaStreamLegacy);
  if (error == cudaSuccess) {
    error = cudaMemcpy(result, observed, sizeof(result), cudaMemcpyDeviceToHost);
  }
  const cudaError_t freed = cudaFree(observed);
  if (error != cudaSuccess) return error;
  globaltimer_step_ns = result[0];
  clock.cycles_per_ns = result[0] <= kFineStepNs
                            ? 0
                            : static_cast<double>(result[1]) / static_cast<double>(result[2]);
  return freed;
}

cudaError_t prepare_kernels(DeviceLimits& limits) {
  int device = 0;
  int shared_bytes = 0;
  int sm_count = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  }
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device);
  }
  if (error != cudaSuccess) return error;
  limits.shared_bytes_per_block = static_cast<std::size_t>(shared_bytes);
  limits.sm_count = static_cast<unsigned>(sm_count);
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(&spin_kernel),
                              cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
}

cudaError_t launch_spin(cudaStream_t stream, const DeviceLimits& limits, SpinClock clock,
                        std::int64_t duration_ns, unsigned blocks) {
  if (blocks == 0) return cudaSuccess;
  void* arguments[] = {&duration_ns, &clock.cycles_per_ns};
  return cudaLaunchKernel(reinterpret_cast<const void*>(&spin_kernel), dim3(blocks), dim3(32),
                          arguments, limits.shared_bytes_per_block, stream);
}

cudaError_t launch_count_cycles(cudaStream_t stream, std::int64_t* cycles_and_ns) {
  void* arguments[] = {&cycles_and_ns};
  return cudaLaunchKernel(reinterpret_cast<const void*>(&count_cycles), dim3(1), dim3(1), arguments,
                          0, stream);
}

}  // namespace foretrace::hw
