#include "models/cost/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>

#include "models/constants/constants.h"
#include "models/cost/attention.h"
#include "models/kernels/kernel_table.h"

namespace foretrace::cost {
namespace {

/// The parameter that is called so, of each of `count` kinds: "library.{}.rate".
template <std::size_t count, class Kind>
auto params_by_kind(fmt::format_string<const char*> key, const char* (*name_of)(Kind)) {
  std::array<std::optional<Param>, count> params;
  for (std::size_t i = 0; i < count; ++i) {
    params[i] = param_named(fmt::format(key, name_of(static_cast<Kind>(i))));
  }
  return params;
}

/// Of a kind that is a roofline of bytes alone: neither attention nor captured.
Param base_of(KernelKind kind) {
  static const auto kParams = params_by_kind<kKernelKinds>("library.{}.base", kernel_kind_name);
  return kParams[static_cast<std::size_t>(kind)].value();
}
Param rate_of(KernelKind kind) {
  static const auto kParams = params_by_kind<kKernelKinds>("library.{}.rate", kernel_kind_name);
  return kParams[static_cast<std::size_t>(kind)].value();
}

Param param_of(FrameworkWork work) {
  static const auto kParams =
      params_by_kind<kFrameworkWorks>("pytorch.eager.{}", framework_work_name);
  return kParams[static_cast<std::size_t>(work)].value();
}

/// What such kernels do to the SMs' clock: the lost part that their power alone would lead to.
/// Kernels below the limit give back what those above it take, so it may be negative.
double lost_by_power(Reading& read, Param power) {
  if (!read.has(power) || !read.has(Param::ProductsClockSlope)) return 0;
  return read.value(Param::ProductsClockSlope) *
         (read.value(power) - read.value(Param::ProductsFreeRandom));
}

/// Of heads of 64 and of 128, in between by the size. Wider ones take smaller tiles: heads of 256
/// have `widest` of the rate of 128; beyond as 256.
double rate_of_width(Reading& read, double width, Param rate_64, Param rate_128, double widest) {
  const double share = std::clamp((width - 64) / 64, 0.0, 1.0);
  if (share == 0) return read.rate(rate_64);
  if (share < 1) return read.rate(rate_64) * (1 - share) + read.rate(rate_128) * share;
  const double beyond = std::clamp((width - 128) / 128, 0.0, 1.0);
  return read.rate(rate_128) * (1 - (1 - widest) * beyond);
}

/// Per flop that is needed. On Hopper (where products have their place) cuDNN's tiles of heads
/// wider than 64 are multiples of 128: heads of 80 and 96 take what 128 take. FlashAttention-2 has
/// tiles in steps of 32.
double attention_rate(Reading& read, double width, Param rate_64, Param rate_128, double widest) {
  static const double kHopper = constant("attention.hopper_tile");
  static const double kOthers = constant("attention.other_tile");
  const double tile = read.has(Param::ProductsHalfRate) ? kHopper : kOthers;
  const double computed = width > 64 ? tile * std::ceil(width / tile) : width;
  return rate_of_width(read, computed, rate_64, rate_128, widest) * width / computed;
}

KernelCost attention_by_facts(Reading& read, const LibraryWork& work) {
  const double seconds = attention_time({work.flops, work.bytes, work.width},
                                        read_attention_facts(read), read_attention_ratios(read));
  KernelCost cost;
  cost.alone = seconds_to_duration(seconds);
  cost.clock.share = 1;
  cost.clock.lost = lost_by_power(read, Param::LibraryAttentionPower);
  return cost;
}

KernelCost attention_cost(Reading& read, const LibraryWork& work) {
  using enum Param;
  if (attention_is_by_facts(read, work)) return attention_by_facts(read, work);
  const bool forward = work.kernel == KernelKind::AttentionForward;
  static const double kWidestForward = constant("attention.widest_forward");
  static const double kWidestBackward = constant("attention.widest_backward");
  const double rate = forward ? attention_rate(read, work.width, LibraryAttentionForwardRate64,
                                               LibraryAttentionForwardRate128, kWidestForward)
                              : attention_rate(read, work.width, LibraryAttentionBackwardRate64,
                                               LibraryAttentionBackwardRate128, kWidestBackward);
  KernelCost cost;
  cost.alone = read.time(forward ? LibraryAttentionForwardBase : LibraryAttentionBackwardBase) +
               seconds_to_duration(work.flops / rate);
  cost.clock.share = 1;
  cost.clock.lost = lost_by_power(read, LibraryAttentionPower);
  return cost;
}

/// A norm's block goes through a row of `width` elements: that it takes however few rows there are.
double row_seconds(const LibraryWork& work) {
  static const double kRow = constant("kernel.norm.row");
  static const double kElement = constant("kernel.norm.element");
  const bool is_norm = work.kernel == KernelKind::RmsNorm && work.width > 0;
  return is_norm ? kRow + kElement * work.width : 0;
}

KernelCost memory_cost(Reading& read, const LibraryWork& work) {
  KernelCost cost;
  cost.alone = read.time(base_of(work.kernel)) +
               seconds_to_duration(work.bytes / read.rate(rate_of(work.kernel)));
  cost.alone = std::max(cost.alone, seconds_to_duration(row_seconds(work)));
  cost.clock.lost = lost_by_power(read, Param::LibraryMemoryPower);
  if (read.has(Param::LibraryMemoryClock)) {
    cost.clock.share = read.value(Param::LibraryMemoryClock);
  }
  return cost;
}

/// Processes of one run do the same work at different speeds (cores, their clocks, where their
/// memory lies), and all wait for the slowest: expected largest of n normal deviations. More than
/// eight at once were never measured and count as eight.
double slowest_of(Reading& read, std::uint32_t processes) {
  constexpr std::array kLargest{0.0, 0.5642, 0.8463, 1.0294, 1.1630, 1.2672, 1.3522, 1.4236};
  if (processes < 2 || !read.has(Param::EagerSlowest)) return 1;
  const std::size_t among = std::min<std::size_t>(processes, kLargest.size());
  return std::exp(read.value(Param::EagerSlowest) * kLargest[among - 1]);
}

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

bool attention_is_by_facts(Reading& read, const LibraryWork& work) {
  if (work.kernel != KernelKind::AttentionForward || !has_attention_facts(read.machine())) {
    return false;
  }
  return !read.has(Param::LibraryAttentionForwardRate128) ||
         keys_of({work.flops, work.bytes, work.width}) < read.value(Param::AttendsFew);
}

KernelCost library_cost(Reading& read, const LibraryWork& work) {
  if (work.kernel == KernelKind::Captured) {
    return captured_cost(read, {work.captured, work.bytes, work.flops});
  }
  const bool attends =
      work.kernel == KernelKind::AttentionForward || work.kernel == KernelKind::AttentionBackward;
  KernelCost cost = attends ? attention_cost(read, work) : memory_cost(read, work);
  cost.sms = read.count(Param::SmCount);
  cost.hbm_bytes_per_second = work.bytes / std::max(1e-12, to_seconds(cost.alone));
  cost.clock.averages = true;
  return cost;
}

Duration framework_time(Reading& read, const FrameworkCalls& calls) {
  Duration mean = read.time(param_of(calls.work)) * calls.count;
  if (calls.loop_us != 0 && read.has(Param::HostLoop) && read.has(Param::HostLoopPower)) {
    const double loop = 1e-6 * calls.loop_us / to_seconds(read.time(Param::HostLoop));
    mean = seconds_to_duration(to_seconds(mean) *
                               std::pow(loop, 1 - read.value(Param::HostLoopPower)));
  }
  if (calls.queries != 0) mean += read.time(Param::EagerCapturedQuery) * calls.queries;
  return seconds_to_duration(to_seconds(mean) * slowest_of(read, calls.processes));
}

}  // namespace foretrace::cost
