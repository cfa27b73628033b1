// Timing by CUDA events.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "hw/cuda/cuda_check.h"

namespace foretrace::hw {

/// Events of one device's stream, made when first needed and kept.
class Events {
 public:
  Events() = default;
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  ~Events() {
    for (cudaEvent_t event : events_) cuda_ignore(cudaEventDestroy(event));
  }
  cudaEvent_t at(std::size_t i) {
    while (events_.size() <= i) {
      cudaEvent_t event = nullptr;
      cuda_check(cudaEventCreate(&event));
      events_.push_back(event);
    }
    return events_[i];
  }
  double ms_between(std::size_t from, std::size_t to) {
    float ms = 0;
    cuda_check(cudaEventElapsedTime(&ms, at(from), at(to)));
    return static_cast<double>(ms);
  }

 private:
  std::vector<cudaEvent_t> events_;
};

}  // namespace foretrace::hw
