#include "models/cost/kernel.h"

#include <algorithm>

namespace foretrace::cost {
namespace {

/// A kernel that `bytes` of memory traffic decide, on all SMs. In the level-2 cache it runs at
/// `cached`; beyond, at `memory` and after a longer start.
KernelCost memory_bound(Reading& read, Param base, double bytes, Param cached, Param memory) {
  const bool in_cache = bytes <= read.value(Param::L2Size);
  KernelCost cost;
  cost.alone = read.time(base) + seconds_to_duration(bytes / read.rate(in_cache ? cached : memory));
  if (!in_cache) cost.alone += read.time(Param::MemoryBase);
  cost.sms = read.count(Param::SmCount);
  cost.hbm_bytes_per_second = bytes / std::max(1e-12, to_seconds(cost.alone));
  return cost;
}

}  // namespace

KernelCost spin_cost(Reading& read, Duration duration, std::uint32_t blocks) {
  const std::uint32_t sms = read.count(Param::SmCount);
  const std::int64_t waves = (std::int64_t{blocks} + sms - 1) / sms;
  Duration spins = kLongestTime;
  if (duration <= kLongestTime / waves) spins = duration * waves;
  const Duration alone = spins + read.time(Param::SpinOverhead);
  return {alone, std::min(blocks, sms), 0, blocks, duration};
}

KernelCost elementwise_cost(Reading& read, Bytes size, std::uint32_t arrays_read) {
  using enum Param;
  const double bytes = static_cast<double>(size.count) * (arrays_read + 1);
  if (arrays_read == 0) return memory_bound(read, KernelBase, bytes, FillCached, FillBandwidth);
  if (arrays_read == 1) return memory_bound(read, KernelBase, bytes, UnaryCached, UnaryBandwidth);
  return memory_bound(read, KernelBase, bytes, BinaryCached, BinaryBandwidth);
}

KernelCost reduction_cost(Reading& read, Bytes size) {
  return memory_bound(read, Param::ReductionBase, static_cast<double>(size.count),
                      Param::ReductionBandwidth, Param::ReductionBandwidth);
}

KernelCost memset_cost(Reading& read, Bytes size) {
  return memory_bound(read, Param::KernelBase, static_cast<double>(size.count), Param::FillCached,
                      Param::MemsetBandwidth);
}

KernelCost host_memset_cost(Reading& read, Bytes size) {
  return {read.time(Param::KernelBase) + at_rate(size, read.rate(Param::D2hBandwidth)), 1, 0};
}

KernelCost device_copy_cost(Reading& read, Bytes size) {
  return memory_bound(read, Param::D2dLatency, 2 * static_cast<double>(size.count),
                      Param::UnaryCached, Param::D2dBandwidth);
}

}  // namespace foretrace::cost
