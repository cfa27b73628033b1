#include "models/cost/captured.h"

#include <algorithm>

namespace foretrace::cost {
namespace {

/// Dense half-precision flop/s; the table's GPU's where the machine has none of its own.
double peak_of(Reading& read, const kernels::KernelTable& table) {
  return read.has(Param::ProductsHalfPeak) ? read.rate(Param::ProductsHalfPeak) : table.peak();
}

/// Bytes a second: what fits into the level-2 cache is no faster where memory alone is.
double memory_rate(Reading& read, const kernels::KernelTable& table, double bytes) {
  const double memory = read.rate(Param::HbmBandwidth);
  const bool is_cached = read.has(Param::L2Size) && bytes <= read.value(Param::L2Size);
  return is_cached ? std::min(memory, table.memory_rate()) : memory;
}

}  // namespace

KernelCost captured_cost(Reading& read, const kernels::Asked& asked) {
  const kernels::KernelTable& table = kernels::shipped_kernels();
  const kernels::Estimate estimate = table.estimate(asked);
  const double peak = asked.flops > 0 ? peak_of(read, table) : table.peak();
  double seconds = table.seconds(asked, estimate, memory_rate(read, table, asked.bytes), peak);
  if (read.has(Param::LibraryCapturedScale)) seconds *= read.value(Param::LibraryCapturedScale);
  KernelCost cost;
  cost.alone = seconds_to_duration(seconds);
  cost.sms = read.count(Param::SmCount);
  // Arguments that are not read, or written twice, are no traffic.
  cost.hbm_bytes_per_second = std::min(asked.bytes / std::max(1e-12, to_seconds(cost.alone)),
                                       table.reached() * read.rate(Param::HbmBandwidth));
  cost.clock.averages = true;
  return cost;
}

}  // namespace foretrace::cost
