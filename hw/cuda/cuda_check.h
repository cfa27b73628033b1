// Turns CUDA runtime error codes into exceptions that name the call site.
#pragma once

#include <cuda_runtime_api.h>

#include <source_location>
#include <stdexcept>
#include <string>

namespace foretrace::hw {

/// A CUDA runtime call failed. what() holds the call site, the code and its text.
class CudaError : public std::runtime_error {
 public:
  CudaError(cudaError_t code, const std::source_location& where)
      : std::runtime_error{std::string{where.file_name()} + ":" + std::to_string(where.line()) +
                           ": " + cudaGetErrorName(code) + ": " + cudaGetErrorString(code)},
        code_{code} {}
  cudaError_t code() const { return code_; }

 private:
  cudaError_t code_;
};

/// cuda_check(cudaStreamSynchronize(stream));
inline void cuda_check(cudaError_t code,
                       std::source_location where = std::source_location::current()) {
  if (code == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // forget it, so the next check is about the next call
  throw CudaError{code, where};
}

/// For destructors and clean-up after a failure: nothing can be done about an error there.
inline void cuda_ignore(cudaError_t code) {
  if (code != cudaSuccess) static_cast<void>(cudaGetLastError());
}

}  // namespace foretrace::hw
