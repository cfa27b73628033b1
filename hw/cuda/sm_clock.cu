// See kernels.h.
#include "hw/cuda/kernels.h"

namespace foretrace::hw {
namespace {

__device__ std::uint64_t now_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

/// From one step of the timer to another, so that its resolution does not count.
__global__ void count_cycles(std::int64_t* cycles_and_ns) {
  constexpr std::uint64_t kObserveNs = 20'000;
  const auto next_step = [](std::uint64_t last) {
    std::uint64_t now = now_ns();
    while (now == last) now = now_ns();
    return now;
  };
  const std::uint64_t first = next_step(now_ns());
  const long long first_cycle = clock64();
  std::uint64_t last = first;
  while (last - first < kObserveNs) last = next_step(last);
  cycles_and_ns[0] = clock64() - first_cycle;
  cycles_and_ns[1] = static_cast<std::int64_t>(last - first);
}

}  // namespace

cudaError_t launch_count_cycles(cudaStream_t stream, std::int64_t* cycles_and_ns) {
  void* arguments[] = {&cycles_and_ns};
  return cudaLaunchKernel(reinterpret_cast<const void*>(&count_cycles), dim3(1), dim3(1), arguments,
                          0, stream);
}

}  // namespace foretrace::hw
