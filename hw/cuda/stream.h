// Owns one CUDA stream. The default streams are handles that nobody owns.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>

#include "hw/cuda/cuda_check.h"
#include "hw/cuda/device_guard.h"
#include "scenarios/program/program.h"

namespace foretrace::hw {

class Stream {
 public:
  Stream(const foretrace::Stream& declared, int ordinal) : ordinal_{ordinal} {
    switch (declared.kind) {
      case StreamKind::LegacyDefault:
        handle_ = nullptr;  // the null stream: this is not compiled with per-thread defaults
        return;
      case StreamKind::PerThreadDefault:
        handle_ = cudaStreamPerThread;
        return;
      case StreamKind::Blocking:
        create(cudaStreamDefault, declared.priority);
        return;
      case StreamKind::NonBlocking:
        create(cudaStreamNonBlocking, declared.priority);
        return;
    }
  }
  ~Stream() {
    if (owned_) cuda_ignore(cudaStreamDestroy(handle_));
  }
  Stream(Stream&& other) noexcept
      : handle_{other.handle_},
        ordinal_{other.ordinal_},
        owned_{std::exchange(other.owned_, false)} {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  Stream& operator=(Stream&&) = delete;

  cudaStream_t handle() const { return handle_; }
  int ordinal() const { return ordinal_; }  ///< the CUDA device
  /// Makes its device the calling thread's and returns the handle: the default streams' handles
  /// mean the current device's.
  cudaStream_t use() const {
    use_device(ordinal_);
    return handle_;
  }

 private:
  void create(unsigned flags, int priority) {
    use_device(ordinal_);
    int least = 0;     // urgent: 0
    int greatest = 0;  // -5 on Hopper
    cuda_check(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    cuda_check(
        cudaStreamCreateWithPriority(&handle_, flags, std::clamp(priority, greatest, least)));
    owned_ = true;
  }

  cudaStream_t handle_{};
  int ordinal_{};
  bool owned_ = false;
};

}  // namespace foretrace::hw
