#include "models/kernel_cost.h"

#include <algorithm>
#include <cmath>

namespace foretrace {
namespace {

struct GemmParams {
  Param base, rate;
};

GemmParams gemm_params(DataType type) {
  switch (type) {
    case DataType::Float64: return {Param::GemmBaseF64, Param::GemmRateF64};
    case DataType::Float16:
    case DataType::BFloat16: return {Param::GemmBaseHalf, Param::GemmRateHalf};
    default: return {Param::GemmBaseF32, Param::GemmRateF32};
  }
}

/// A kernel that `bytes` of memory traffic decide, on all SMs.
KernelCost memory_bound(const Machine& machine, Duration base, double bytes, double rate) {
  KernelCost cost;
  cost.alone = base + seconds_to_duration(bytes / rate);
  cost.sms = machine.count(Param::SmCount);
  cost.hbm_bytes_per_second = bytes / std::max(1e-12, to_seconds(cost.alone));
  return cost;
}

}  // namespace

KernelCost spin_cost(const Machine& machine, Duration duration, std::uint32_t blocks) {
  const std::uint32_t sms = machine.count(Param::SmCount);
  const std::uint32_t waves = (blocks + sms - 1) / sms;
  return {duration * waves + machine.time(Param::SpinOverhead), std::min(blocks, sms), 0};
}

KernelCost gemm_cost(const Machine& machine, DataType type, std::int64_t m, std::int64_t n,
                     std::int64_t k) {
  const GemmParams params = gemm_params(type);
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  KernelCost cost;
  cost.alone =
      machine.time(params.base) + seconds_to_duration(flops / machine.rate(params.rate));
  // 128 x 128 outputs per block, as cuBLAS's large-product kernels have them.
  const double blocks = std::ceil(static_cast<double>(m) / 128) * std::ceil(static_cast<double>(n) / 128);
  cost.sms = static_cast<std::uint32_t>(
      std::clamp(blocks, 1.0, static_cast<double>(machine.count(Param::SmCount))));
  const double elements = static_cast<double>(m) * static_cast<double>(k) +
                          static_cast<double>(k) * static_cast<double>(n) +
                          static_cast<double>(m) * static_cast<double>(n);
  cost.hbm_bytes_per_second = elements * static_cast<double>(size_of(type).count) /
                              std::max(1e-12, to_seconds(cost.alone));
  return cost;
}

KernelCost elementwise_cost(const Machine& machine, Bytes size, std::uint32_t arrays_read) {
  const double bytes = static_cast<double>(size.count) * (arrays_read + 1);
  const bool cached = bytes <= machine.get(Param::L2Size).value;
  return memory_bound(machine, machine.time(Param::KernelBase), bytes,
                      machine.rate(cached ? Param::L2Bandwidth : Param::HbmBandwidth));
}

KernelCost reduction_cost(const Machine& machine, Bytes size) {
  return memory_bound(machine, machine.time(Param::ReductionBase), static_cast<double>(size.count),
                      machine.rate(Param::ReductionBandwidth));
}

KernelCost memset_cost(const Machine& machine, Bytes size) {
  return memory_bound(machine, machine.time(Param::KernelBase), static_cast<double>(size.count),
                      machine.rate(Param::MemsetBandwidth));
}

}  // namespace foretrace
