#include "models/cost/host_work.h"

#include <algorithm>
#include <cmath>

#include "models/constants/constants.h"

namespace foretrace::cost {

namespace {

/// What so many threads get together: on a line between one core, half of the cores, each of which
/// gets a share of that, and all of them.
double on_the_line(Reading& read, std::uint32_t threads, double one, double half_share,
                   double all) {
  const double at_work = threads_at_work(read, threads);
  const double cores = std::max(1U, read.count(Param::HostCores));
  const double middle = std::max(1.0, cores / 2);
  const double of_half = middle * one * half_share;
  if (at_work <= middle) {
    return middle > 1 ? one + (of_half - one) * (at_work - 1) / (middle - 1) : one;
  }
  return of_half + (all - of_half) * (at_work - middle) / (cores - middle);
}

}  // namespace

std::uint32_t threads_at_work(Reading& read, std::uint32_t threads) {
  const std::uint32_t cores = std::max(1U, read.count(Param::HostCores));
  return threads == 0 ? cores : std::min(threads, cores);
}

double parallel_flops(Reading& read, std::uint32_t threads) {
  using enum Param;
  const double one = read.rate(HostCoreFlops);
  if (!read.has(HostHalfFlops) || !read.has(HostAllFlops)) {
    return threads_at_work(read, threads) * one;
  }
  const double all = read.count(HostCores) * one * read.value(HostAllFlops);
  return on_the_line(read, threads, one, read.value(HostHalfFlops), all);
}

double parallel_bandwidth(Reading& read, std::uint32_t threads) {
  using enum Param;
  const double one = read.rate(HostCoreMemory);
  const double all = read.rate(HostMemoryBandwidth);
  const double asked = read.has(HostHalfMemory)
                           ? on_the_line(read, threads, one, read.value(HostHalfMemory), all)
                           : threads_at_work(read, threads) * one;
  return std::min(asked, all);
}

Duration until_all_begin(Reading& read, std::uint32_t threads) {
  static const double kPower = constant("host.parallel_power");
  const double all = std::max(1U, read.count(Param::HostCores));
  const double others = threads_at_work(read, threads) - 1;
  const double share = all > 1 ? std::pow(others / (all - 1), kPower) : 1;
  return seconds_to_duration(to_seconds(read.time(Param::HostParallelCall)) * share);
}

namespace {

Duration compute_time(Reading& read, const ParallelWork& work) {
  if (work.flops <= 0) return Duration{0};
  return seconds_to_duration(work.flops / parallel_flops(read, work.threads));
}

Duration memory_time(Reading& read, const ParallelWork& work) {
  if (work.bytes.count == 0) return Duration{0};
  return at_rate(work.bytes, parallel_bandwidth(read, work.threads));
}

}  // namespace

Duration time_beside_each_other(Reading& read, const ParallelWork& work) {
  if (work.flops <= 0 || work.bytes.count == 0 || !read.has(Param::HostCoreBoth)) {
    return Duration{0};
  }
  const Duration shorter = std::min(compute_time(read, work), memory_time(read, work));
  return seconds_to_duration(to_seconds(shorter) * read.value(Param::HostCoreBoth));
}

Duration parallel_time(Reading& read, const ParallelWork& work) {
  const Duration longer = std::max(compute_time(read, work), memory_time(read, work));
  return until_all_begin(read, work.threads) + longer + time_beside_each_other(read, work);
}

Duration read_file_time(Reading& read, Bytes size) {
  const double rate = std::min(read.rate(Param::StorageReader), read.rate(Param::StorageBandwidth));
  return read.time(Param::StorageLatency) + at_rate(size, rate);
}

}  // namespace foretrace::cost
