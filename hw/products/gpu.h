// The GPU that products run on, and a stream of their own there.
#pragma once

#include <cuda_runtime_api.h>

#include "hw/cuda/cuda_check.h"

namespace foretrace::hw {

/// Makes `device` the thread's; throws CannotHereError when it is not there.
cudaDeviceProp properties_of(int device);

class OwnStream {
 public:
  OwnStream() { cuda_check(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking)); }
  ~OwnStream() { cuda_ignore(cudaStreamDestroy(handle_)); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  operator cudaStream_t() const { return handle_; }

 private:
  cudaStream_t handle_{};
};

}  // namespace foretrace::hw
