#include "models/cost/host_work.h"

#include <algorithm>
#include <cmath>

#include "models/constants/constants.h"

namespace foretrace::cost {

std::uint32_t threads_at_work(Reading& read, std::uint32_t threads) {
  const std::uint32_t cores = std::max(1U, read.count(Param::HostCores));
  return threads == 0 ? cores : std::min(threads, cores);
}

double parallel_flops(Reading& read, std::uint32_t threads) {
  return threads_at_work(read, threads) * read.rate(Param::HostCoreFlops);
}

double parallel_bandwidth(Reading& read, std::uint32_t threads) {
  return std::min(threads_at_work(read, threads) * read.rate(Param::HostCoreMemory),
                  read.rate(Param::HostMemoryBandwidth));
}

Duration until_all_begin(Reading& read, std::uint32_t threads) {
  static const double kPower = constant("host.parallel_power");
  const double all = std::max(1U, read.count(Param::HostCores));
  const double others = threads_at_work(read, threads) - 1;
  const double share = all > 1 ? std::pow(others / (all - 1), kPower) : 1;
  return seconds_to_duration(to_seconds(read.time(Param::HostParallelCall)) * share);
}

Duration parallel_time(Reading& read, const ParallelWork& work) {
  Duration busy{};
  if (work.flops > 0) busy = seconds_to_duration(work.flops / parallel_flops(read, work.threads));
  if (work.bytes.count > 0) {
    busy = std::max(busy, at_rate(work.bytes, parallel_bandwidth(read, work.threads)));
  }
  return until_all_begin(read, work.threads) + busy;
}

Duration read_file_time(Reading& read, Bytes size) {
  const double rate = std::min(read.rate(Param::StorageReader), read.rate(Param::StorageBandwidth));
  return read.time(Param::StorageLatency) + at_rate(size, rate);
}

}  // namespace foretrace::cost
