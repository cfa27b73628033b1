// Owns one CUDA event.
#pragma once

#include <cuda_runtime_api.h>

#include <utility>

#include "hw/cuda/cuda_check.h"
#include "hw/cuda/device_guard.h"
#include "scenarios/program/program.h"

namespace foretrace::hw {

class Event {
 public:
  Event(const foretrace::Event& declared, int ordinal) {
    use_device(ordinal);
    cuda_check(cudaEventCreateWithFlags(
        &handle_, declared.timing ? cudaEventDefault : cudaEventDisableTiming));
  }
  ~Event() {
    if (handle_ != nullptr) cuda_ignore(cudaEventDestroy(handle_));
  }
  Event(Event&& other) noexcept : handle_{std::exchange(other.handle_, nullptr)} {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  Event& operator=(Event&&) = delete;

  cudaEvent_t handle() const { return handle_; }

 private:
  cudaEvent_t handle_{};
};

}  // namespace foretrace::hw
