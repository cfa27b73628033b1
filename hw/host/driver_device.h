// What the probes of a GPU's driver share: a device with streams and memory, and slopes.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "hw/cuda/cuda_check.h"
#include "hw/host/probe.h"
#include "hw/host/timer.h"

namespace foretrace::hw {

inline constexpr std::size_t kKi = 1024, kMi = kKi * kKi, kGi = kKi * kMi;
inline constexpr int kRows = 8;
inline constexpr int kCallsInARow = 16;  // far fewer than a launch queue holds

/// Bytes of the larger size beyond the smaller one, over the time beyond it.
inline double slope(std::size_t small, double small_seconds, std::size_t large,
                    double large_seconds) {
  return static_cast<double>(large - small) / (large_seconds - small_seconds);
}

/// A base that is no less than a tenth of the smaller one's time: what is below is noise.
inline double base(std::size_t bytes, double seconds, double rate) {
  return std::max(seconds - static_cast<double>(bytes) / rate, seconds / 10);
}

/// What all probes of the driver work with.
struct DriverDevice {
  DriverDevice() {
    cuda_check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0));
    cuda_check(cudaStreamCreateWithPriority(&other, cudaStreamNonBlocking, 0));
    cuda_check(cudaMalloc(&memory, kMemory));
    cuda_check(cudaHostAlloc(&pinned, kPiece, cudaHostAllocPortable));
    cuda_check(cudaEventCreateWithFlags(&timed, cudaEventDefault));
    cuda_check(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  }
  ~DriverDevice() {
    for (cudaStream_t one : {stream, other}) cuda_ignore(cudaStreamDestroy(one));
    cuda_ignore(cudaFree(memory));
    cuda_ignore(cudaFreeHost(pinned));
    for (cudaEvent_t one : {timed, untimed}) cuda_ignore(cudaEventDestroy(one));
  }
  DriverDevice(const DriverDevice&) = delete;
  DriverDevice& operator=(const DriverDevice&) = delete;

  /// Of one of some calls in a row, on an idle GPU: the median of some rows behind one that fetches
  /// the call's code and data into the caches, as node/host_speed.h times launches.
  template <class Function>
  double call(Function&& function) const {
    std::array<double, kRows> seconds{};
    for (int row = -1; row < kRows; ++row) {
      const double one = seconds_of([&] {
        for (int i = 0; i < kCallsInARow; ++i) cuda_check(function());
      });
      cuda_check(cudaDeviceSynchronize());
      if (row >= 0) seconds[static_cast<std::size_t>(row)] = one;
    }
    std::ranges::nth_element(seconds, seconds.begin() + kRows / 2);
    return seconds[kRows / 2] / kCallsInARow;
  }

  static constexpr std::size_t kMemory = 64 * kMi;
  /// The driver gets memory in pieces of so much: what fits in one that is there costs little.
  static constexpr std::size_t kPiece = 2 * kMi;
  cudaStream_t stream{}, other{};
  void *memory{}, *pinned{};
  cudaEvent_t timed{}, untimed{};
};

/// Between a GPU and pageable memory, and within the host's: copy_probes.cc.
std::vector<Probe> copy_probes(const std::shared_ptr<DriverDevice>& device);

}  // namespace foretrace::hw
