#include "hw/products/gpu.h"

#include <fmt/format.h>

#include "hw/cuda/device_guard.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::hw {

cudaDeviceProp properties_of(int device) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    throw CannotHereError{fmt::format("no GPU: {}", cudaGetErrorString(error))};
  }
  if (device < 0 || device >= count) {
    throw CannotHereError{fmt::format("--device {}, but this machine has {} GPUs", device, count)};
  }
  use_device(device);
  cudaDeviceProp properties{};
  cuda_check(cudaGetDeviceProperties(&properties, device));
  return properties;
}

}  // namespace foretrace::hw
