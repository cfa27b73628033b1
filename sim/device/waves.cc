// A kernel's blocks in waves: how long they take, and what happens when somebody needs their SMs.
#include <algorithm>
#include <cmath>

#include "sim/device/device.h"

namespace foretrace::sim {

/// What a kernel takes longer beside a product, whose blocks keep the SMs' front ends and the
/// level-2 cache busy, with the longer way to the next one: medians of spans of small kernels on
/// SMs of their own beside 21 products (tests/hw/causes/windows.py). Nodes of graphs show nothing
/// of it (captured_branches of the blind rounds).
Duration Device::beside_products(const Kernel& kernel) const {
  constexpr Duration kBesideNvjet = std::chrono::nanoseconds{1100};
  constexpr Duration kBesideOlder = std::chrono::nanoseconds{400};
  const cost::KernelCost& cost = kernel.cost;
  if (kernel.in_graph || cost.keeps_its_sms || cost.staggers || cost.takes_no_sm)
    return Duration{0};
  Duration longer{0};
  for (const Job& job : jobs_) {
    if (job.kernel->cost.keeps_its_sms) return kBesideNvjet;
    if (job.kernel->cost.staggers) longer = kBesideOlder;
  }
  return longer;
}

/// By the clock at its begin; what changes while it runs is the next one's.
void Device::slow_down(Kernel& kernel) const {
  cost::KernelCost& cost = kernel.cost;
  cost.alone += beside_products(kernel);
  if (cost.clock_share == 0) return;
  const double slower = 1 + cost.clock_share * std::max(0.0, clock_.lost(engine_.now()));
  cost.alone = stretched(cost.alone, slower);
  cost.block_time = stretched(cost.block_time, slower);
  cost.last_time = stretched(cost.last_time, slower);
  cost.sooner_time = stretched(cost.sooner_time, slower);
}

/// What a kernel takes beyond its waves it takes at its beginning.
Device::Job& Device::start_job(Kernel& kernel, std::uint32_t sms, std::uint32_t waves) {
  const cost::KernelCost& cost = kernel.cost;
  const std::uint32_t before_last = (cost.blocks - 1) / limits_.sms;
  const Duration last = cost.last_time > Duration{0} ? cost.last_time : cost.block_time;
  const Duration start =
      kernel.began ? cost.again : cost.alone - cost.block_time * before_last - last;
  const Duration all = cost.block_time * waves;
  const Duration taken = kernel.pace == 1 ? all : stretched(all, kernel.pace);
  jobs_.push_back({.kernel = &kernel,
                   .sms = sms,
                   .waves = waves,
                   .pace = kernel.pace,
                   .lead = kernel.lead + all - taken,
                   .alone = start + taken,
                   .since = engine_.now()});
  ++kernel.running;
  return jobs_.back();
}

/// Blocks of older products do not stay in step: some SMs are ahead from wave to wave, and what
/// waits for one finds one at nearly any moment of the later waves and of the end. By 7 % of a wave
/// each, up to half of one: spans of small kernels beside 11 such products on an H200
/// (tests/hw/causes/windows.py).
void Device::start_apart(Kernel& kernel, std::uint32_t sms, std::uint32_t waves) {
  constexpr std::uint32_t kGroups = 12;
  constexpr double kAhead = 0.07, kMostAhead = 0.45;
  const std::uint32_t all = limits_.sms;
  const std::uint32_t of_a_group = (sms + kGroups - 1) / kGroups;
  if (!kernel.cost.staggers || kernel.cost.blocks < all) {
    start_job(kernel, sms, waves);
    return;
  }
  if (sms <= all / kGroups + 1) {
    const Duration waits = waits_at_last(kernel, sms);
    if (waits > Duration{0}) kernel.pace = 1;
    wait_for_others(start_job(kernel, sms, waves), waits);
    return;
  }
  const double ahead = std::min(kAhead, kMostAhead * all / kernel.cost.blocks);
  kernel.lead = Duration{0};
  for (std::uint32_t left = sms; left > 0;) {
    const std::uint32_t given = std::min(of_a_group, left);
    left -= given;
    kernel.pace = 1 - ahead * left / sms;
    start_job(kernel, given, waves);
  }
}

/// The blocks of a last wave begin sooner on SMs that are ahead, and the kernel takes what it takes
/// all the same: where that wave leaves SMs idle all of them wait, else its last ones do.
Duration Device::waits_at_last(const Kernel& kernel, std::uint32_t sms) const {
  constexpr double kFull = 0.9;
  const std::uint32_t last = (kernel.cost.blocks - 1) % limits_.sms + 1;
  if (!kernel.cost.staggers || kernel.blocks_left > last) return Duration{0};
  const bool is_full = last >= kFull * limits_.sms && kernel.cost.sooner == 0;
  return is_full && kernel.blocks_left > sms ? Duration{0} : kernel.lead;
}

/// Its SMs are ahead no longer.
void Device::wait_for_others(Job& job, Duration waits) {
  job.alone += waits;
  job.lead -= waits;
}

/// Blocks of the last wave, on `sms` SMs: those that end sooner come last.
void Device::start_last(Kernel& kernel, std::uint32_t sms) {
  const cost::KernelCost& cost = kernel.cost;
  const std::uint32_t fuller = kernel.blocks_left - std::min(kernel.blocks_left, cost.sooner);
  const std::uint32_t longer = std::min(sms, fuller);
  const Duration waits = waits_at_last(kernel, sms);
  kernel.pace = 1;
  if (longer > 0) {
    Job& job = start_job(kernel, longer, 1);
    job.alone += cost.last_time - cost.block_time;
    wait_for_others(job, waits);
  }
  if (sms > longer) {
    Job& job = start_job(kernel, sms - longer, 1);
    job.alone += cost.sooner_time - cost.block_time;
    wait_for_others(job, waits);
    job.sooner = true;
  }
  kernel.blocks_left -= sms;
}

/// A more urgent kernel has come: the others' later waves go back to be given out in turn.
void Device::shorten_waves(int priority) {
  for (Job& job : jobs_) {
    Kernel& kernel = *job.kernel;
    if (job.waves == 1 || kernel.priority <= priority || kernel.cost.keeps_its_sms) continue;
    if (kernel.cost.block_time <= Duration{0}) continue;  // all of it is its start
    progress(job);
    const auto done = static_cast<double>(job.alone.count()) * (1 - job.remaining);
    const double wave = static_cast<double>(kernel.cost.block_time.count()) * job.pace;
    const double start = static_cast<double>(job.alone.count()) - wave * job.waves;
    const auto kept = static_cast<std::uint32_t>(
        std::clamp(std::ceil((done - start) / wave), 1.0, static_cast<double>(job.waves)));
    kernel.blocks_left += (job.waves - kept) * job.sms;
    const Duration dropped = kernel.cost.block_time * (job.waves - kept);
    job.alone -= stretched(dropped, job.pace);
    job.lead -= stretched(dropped, 1 - job.pace);
    job.waves = kept;
    job.remaining = 1 - done / static_cast<double>(job.alone.count());
    job.speed = 0;  // to be set anew
  }
}

}  // namespace foretrace::sim
