#include "hw/node/host_speed.h"

#include <algorithm>
#include <array>
#include <map>

#include "hw/cuda/device_guard.h"
#include "hw/cuda/kernels.h"
#include "hw/trace/clock.h"

namespace foretrace::hw {
namespace {

constexpr std::size_t kTimes = 8;
constexpr int kCalls = 16;  // far fewer than a launch queue holds

/// One for each device, for as long as the process lives: a launch in the legacy stream would pay
/// for every other stream that there is.
cudaStream_t own_stream(int ordinal) {
  static std::map<int, cudaStream_t> streams;
  cudaStream_t& stream = streams[ordinal];
  if (stream == nullptr)
    cuda_check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0));
  return stream;
}

std::int64_t launches(cudaStream_t stream) {
  const std::int64_t begin = now_ns();
  for (int i = 0; i < kCalls; ++i) cuda_check(launch_spin(stream, {}, {}, 0, 1));
  const std::int64_t end = now_ns();
  cuda_check(cudaStreamSynchronize(stream));
  return (end - begin) / kCalls;
}

}  // namespace

std::optional<std::int64_t> launch_ns(int ordinal) try {
  use_device(ordinal);
  const cudaStream_t stream = own_stream(ordinal);
  launches(stream);  // fetches the call's code and data into the caches
  std::array<std::int64_t, kTimes> times{};
  for (std::int64_t& time : times) time = launches(stream);
  std::ranges::nth_element(times, times.begin() + kTimes / 2);
  return times[kTimes / 2];
} catch (const CudaError&) {
  static_cast<void>(cudaGetLastError());
  return std::nullopt;
}

}  // namespace foretrace::hw
