// Turns CUDA runtime error codes into exceptions that name the call site.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#include "hw/guard/call_site.h"

namespace foretrace::hw {

/// A CUDA runtime call failed. what() holds the call site, the code and its text.
class CudaError : public std::runtime_error {
 public:
  CudaError(cudaError_t code, const CallSite& where)
      : std::runtime_error{where.text() + ": " + cudaGetErrorName(code) + ": " +
                           cudaGetErrorString(code)},
        code_{code} {}
  cudaError_t code() const { return code_; }

 private:
  cudaError_t code_;
};

/// cuda_check(cudaStreamSynchronize(stream));
inline void cuda_check(cudaError_t code, CallSite where = CallSite::current()) {
  if (code == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // forget it, so the next check is about the next call
  throw CudaError{code, where};
}

/// For destructors and clean-up after a failure: nothing can be done about an error there.
inline void cuda_ignore(cudaError_t code) {
  if (code != cudaSuccess) static_cast<void>(cudaGetLastError());
}

}  // namespace foretrace::hw
