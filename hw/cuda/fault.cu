// See kernels.h.
#include "hw/cuda/kernels.h"

namespace foretrace::hw {
namespace {

/// In assembly: a compiler may take a store to a constant address for something that never happens.
__global__ void fault_kernel(std::uint64_t address) {
  asm volatile("st.global.u32 [%0], %1;" ::"l"(address), "r"(1) : "memory");
}

/// Within the first page, which no allocation gets.
constexpr std::uint64_t kUnmapped = 0x100;

}  // namespace

cudaError_t launch_fault(cudaStream_t stream) {
  std::uint64_t address = kUnmapped;
  void* arguments[] = {&address};
  return cudaLaunchKernel(reinterpret_cast<const void*>(&fault_kernel), dim3(1), dim3(1), arguments,
                          0, stream);
}

cudaError_t load_fault_kernel() {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&fault_kernel));
}

}  // namespace foretrace::hw
