// How running kernels, and NCCL, share a GPU's memory.
#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <utility>

#include "sim/chunk/network.h"
#include "sim/device/device.h"

namespace foretrace::sim {

/// As far as SMs decide. Those that NCCL holds use as much of the memory as any other.
double Device::speed_of(const Job& job) const {
  const cost::KernelCost& cost = job.kernel->cost;
  if (cost.waves.blocks > 0) return 1;
  const std::uint32_t all = std::max(1U, cost.sms);
  const std::uint32_t enough = cost.enough_sms > 0 ? cost.enough_sms : all;
  const double beside_nccl = static_cast<double>(limits_.sms - held_sms()) / all;
  return std::min({1.0, static_cast<double>(job.sms) / enough, beside_nccl});
}

/// Bytes per second of device memory at full speed on the SMs it has.
double Device::demand(const Job& job) const {
  const cost::KernelCost& cost = job.kernel->cost;
  if (cost.waves.blocks == 0) return cost.hbm_bytes_per_second * speed_of(job);
  return cost.hbm_bytes_per_second * job.sms / std::max(1U, cost.sms);
}

/// Max-min: jobs that want less than an equal share get it all, the others split the rest.
void Device::share_memory_bandwidth() {
  boost::container::small_vector<std::pair<double, std::size_t>, 8> demands;  // by job
  for (std::size_t i = 0; i < jobs_.size(); ++i) demands.emplace_back(demand(jobs_[i]), i);
  if (demands.size() > 1) std::ranges::sort(demands);
  double left = limits_.hbm_bytes_per_second;
  std::size_t others = demands.size();
  for (const auto& [wanted, i] : demands) {
    const double share = std::min(wanted, left / static_cast<double>(others--));
    left -= share;
    const double by_sms = speed_of(jobs_[i]);
    update(jobs_[i], wanted > 0 ? by_sms * share / wanted : by_sms);
  }
  memory_used_ = 1 - left / limits_.hbm_bytes_per_second;
  slow_nccl(memory_used_);
}

/// While no NCCL kernel runs here, nobody looks at the link.
void Device::slow_nccl(double memory_use) {
  if (!limits_.nccl_memory || memory_use == memory_use_) return;
  if (std::ranges::none_of(kernels_, [](const auto& kernel) { return kernel->held; })) return;
  memory_use_ = memory_use;
  const NcclMemory& memory = *limits_.nccl_memory;
  if (memory.chunks != nullptr) memory.chunks->slow(memory.gpu, 1 + memory.slowdown * memory_use);
  const double rate = memory.idle.bytes_per_second() / (1 + memory.slowdown * memory_use);
  memory.link->set_bandwidth(engine_, memory.member, Bandwidth::gigabytes_per_second(rate * 1e-9));
}

}  // namespace foretrace::sim
