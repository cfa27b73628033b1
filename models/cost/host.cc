#include "models/cost/host.h"

#include <algorithm>
#include <cmath>

#include "models/constants/constants.h"

namespace foretrace::cost {
namespace {

Duration of(Duration time, double share) {
  return Duration{std::llround(static_cast<double>(time.count()) * share)};
}

bool queues_work(Param param) {
  using enum Param;
  return param == HostLaunchKernel || param == HostLaunchGemm || param == HostMemcpyAsync ||
         param == HostMemcpyDevice || param == HostMemset;
}

/// What cuBLAS does before it launches it does in a capture, too: 80 products of
/// `capture_and_instantiate` (24_graph_decode of written-5) were 45 % too cheap without it.
Duration captured_product_time(Reading& read, const Call& call) {
  if (call.param != Param::HostLaunchGemm || !read.has(Param::HostLaunchKernel)) return {};
  const Duration own = read.time(Param::HostLaunchGemm) - read.time(Param::HostLaunchKernel);
  return std::max(Duration{0}, own);
}

}  // namespace

Duration contention(Reading& read, Duration cost, std::uint32_t others) {
  if (others == 0 || !read.has(Param::HostContention)) return Duration{0};
  const double share = read.value(Param::HostContention);
  const double waited = static_cast<double>(cost.count()) * others * share;
  return Duration{std::llround(std::min(waited, static_cast<double>(kLongestTime.count())))};
}

Duration call_time(Reading& read, const Call& call) {
  Duration time{0};
  if (call.is_captured) {
    time = capture_time(read, 1) + captured_product_time(read, call);
  } else {
    time = call.is_inner ? read.time(call.param) : read.call_time(call.param);
    // From Python too it is CUDA's part that is longer or shorter.
    if (call.share != 1) time += of(read.time(call.param), call.share - 1);
    if (call.kernels > 1) time += read.time(Param::HostLaunchKernel) * (call.kernels - 1);
    const bool gemm = call.param == Param::HostLaunchGemm;
    const Param first = gemm ? Param::HostFirstGemm : Param::HostFirstCall;
    if (call.is_first) time += read.time(first);
    if (call.finds_later_work && read.has(Param::HostQueryLater)) {
      time += read.time(Param::HostQueryLater);
    }
    time += contention(read, time, call.others);
    if (call.processes > 0 && queues_work(call.param) && read.has(Param::HostBesideProcess)) {
      time += of(time, read.value(Param::HostBesideProcess));
    }
  }
  return call.switches_device ? time + read.time(Param::HostSetDevice) : time;
}

std::optional<Duration> launch_time(const Machine& machine, std::uint32_t processes) {
  constexpr Param kLaunch = Param::HostLaunchKernel;
  if (!machine.has(kLaunch) || machine.is_replaced(kLaunch)) return std::nullopt;
  Reading read{machine};
  return call_time(read, {.param = kLaunch, .processes = processes - 1});
}

Bytes small_memset() {
  static const Bytes kSize = constant_size("kernel.small_memset");
  return kSize;
}

Duration memset_time(Reading& read, const Call& call, Bytes size) {
  static const double kShare = constant("kernel.small_memset.call");
  const Duration time = call_time(read, call);
  if (call.is_captured || size > small_memset() || !read.takes(Term::SmallMemset)) return time;
  return of(time, kShare);
}

Duration sized_call_time(Reading& read, const Call& call, Param rate, Bytes size) {
  using enum Param;
  Duration time = call_time(read, call);
  // The driver of the node gives out memory and takes it back one process after the other.
  if (call.param == HostMalloc || call.param == HostFree) {
    time = beside_processes(read, time, call.processes);
  }
  time += at_rate(size, read.rate(rate));
  const auto least = [&](Param param) {
    return read.has(param) ? std::max(time, read.time(param)) : time;
  };
  if (call.param == HostAllocBase) return least(HostAllocLeast);
  if (call.param == HostFreeHostBase) return least(HostFreeHostLeast);
  return time;
}

Duration beside_processes(Reading& read, Duration time, std::uint32_t others) {
  if (others == 0 || !read.has(Param::HostMallocBesideProcess)) return time;
  return time + of(time, read.value(Param::HostMallocBesideProcess)) * others;
}

Duration malloc_async_time(Reading& read, const Call& call, Bytes grown, std::uint32_t others) {
  const Duration time = call_time(read, call);
  if (grown.count == 0 || !read.has(Param::HostPoolGrow)) return time;
  const Duration growing =
      read.time(Param::HostPoolGrow) + at_rate(grown, read.rate(Param::HostPoolGrowBandwidth));
  return time + beside_processes(read, growing, others);
}

Duration pool_trim_time(Reading& read, Bytes given_back, std::uint32_t others) {
  if (given_back.count == 0 || !read.has(Param::HostPoolTrim)) return Duration{0};
  const Duration trimming =
      read.time(Param::HostPoolTrim) + at_rate(given_back, read.rate(Param::HostPoolTrimBandwidth));
  return beside_processes(read, trimming, others);
}

Duration clear_time(Reading& read, Bytes freed) {
  if (!read.has(Param::HostClearBandwidth)) return Duration{0};
  return at_rate(freed, read.rate(Param::HostClearBandwidth));
}

Duration wake_time(Reading& read, Wait wait) {
  switch (wait) {
    case Wait::Event:
      return read.time(Param::HostWakeEvent);
    case Wait::Barrier:
      return read.time(Param::HostBarrier);
    case Wait::Signal:
      return read.time(Param::HostSignal);
    case Wait::Device:
      break;
  }
  return read.time(Param::HostWake);
}

Duration enable_peer_time(Reading& read, bool is_done, bool switches_device) {
  if (!is_done) return read.time(Param::HostEnablePeer);
  return switches_device ? read.time(Param::HostSetDevice) : Duration{0};
}

Duration poll_time(Reading& read, const Call& query, Duration interval) {
  return std::max(call_time(read, query), interval);
}

Duration touch_time(Reading& read, Bytes fresh) {
  return fresh.count > 0 ? at_rate(fresh, read.rate(Param::HostTouchBandwidth)) : Duration{0};
}

Duration register_time(Reading& read, const Call& call, Bytes size, Bytes fresh) {
  const Duration time = sized_call_time(read, call, Param::HostRegisterBandwidth, size);
  const double share =
      read.has(Param::HostRegisterTouch) ? read.value(Param::HostRegisterTouch) : 1;
  return time + seconds_to_duration(share * to_seconds(touch_time(read, fresh)));
}

Duration fill_time(Reading& read, Bytes size, Bytes fresh) {
  return at_rate(size, read.rate(Param::HostFillBandwidth)) + touch_time(read, fresh);
}

Duration capture_time(Reading& read, std::size_t calls) {
  return read.time(Param::HostCapture) * static_cast<std::int64_t>(calls);
}

Duration nccl_capture_time(Reading& read, std::size_t calls) {
  if (calls == 0 || !read.has(Param::NcclHostCaptured)) return capture_time(read, calls);
  const bool known = read.has(Param::NcclHostGrouped);
  const Duration further = known ? read.time(Param::NcclHostGrouped) : Duration{0};
  return read.time(Param::NcclHostCaptured) + further * static_cast<std::int64_t>(calls - 1);
}

Duration graph_instantiate_time(Reading& read, std::uint32_t nodes) {
  return read.time(Param::HostGraphInstantiate) +
         read.time(Param::HostGraphInstantiatePerNode) * nodes;
}

Duration graph_launch_time(Reading& read, const Call& call, std::uint32_t nodes) {
  return call_time(read, call) + read.time(Param::HostGraphLaunchPerNode) * nodes;
}

Duration host_function_delay(Reading& read, bool follows, Duration waited) {
  if (follows) return read.time(Param::HostFuncNext);
  const Duration latency = read.time(Param::HostFuncLatency);
  if (waited <= Duration{0}) return latency;
  // It comes no later than by what it has looked in vain: 27 us behind kernels of 1 us, 62 behind
  // those of 20 us (hw/laboratory/causes/host_functions.yaml on an H200).
  return latency + std::min(waited, read.time(Param::HostFuncPoll)) +
         of(waited, read.value(Param::HostFuncBackoff));
}

}  // namespace foretrace::cost
