// Which GPU a host thread's CUDA calls go to.
#pragma once

#include <cuda_runtime_api.h>

#include "hw/cuda/cuda_check.h"

namespace foretrace::hw {

/// cudaSetDevice, but only when this thread's device changes: the call costs tens of nanoseconds,
/// and a program that stays on one GPU would not make it. Nothing else in hw/ sets the device.
inline void use_device(int ordinal) {
  thread_local int current = -1;
  if (current == ordinal) return;
  cuda_check(cudaSetDevice(ordinal));
  current = ordinal;
}

}  // namespace foretrace::hw
