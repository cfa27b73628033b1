// A kernel's blocks in waves: how long they take, and what happens when somebody needs their SMs.
#include <algorithm>
#include <cmath>

#include "models/constants/constants.h"
#include "sim/device/device.h"

namespace foretrace::sim {

/// What a kernel takes longer beside a product, whose blocks keep the SMs' front ends and the
/// level-2 cache busy, with the longer way to the next one. Nodes of graphs show nothing of it
/// (captured_branches of the blind rounds).
Duration Device::beside_products(const Kernel& kernel) const {
  static const Duration kBesideNvjet = constant_time("device.beside_nvjet");
  static const Duration kBesideOlder = constant_time("device.beside_older");
  const cost::KernelCost& cost = kernel.cost;
  if (!limits_.takes(Term::BesideProducts)) return Duration{0};
  if (kernel.in_graph || cost.waves.keeps_its_sms || cost.waves.staggers || cost.room.takes_no_sm)
    return Duration{0};
  Duration longer{0};
  for (const Job& job : jobs_) {
    if (job.kernel->cost.waves.keeps_its_sms) return kBesideNvjet;
    if (job.kernel->cost.waves.staggers) longer = kBesideOlder;
  }
  return longer;
}

/// By the clock at its begin; what changes while it runs is the next one's.
void Device::slow_down(Kernel& kernel) const {
  cost::KernelCost& cost = kernel.cost;
  cost.alone += beside_products(kernel);
  if (cost.clock.share == 0) return;
  const double slower = 1 + cost.clock.share * std::max(0.0, clock_.lost(engine_.now()));
  cost.alone = stretched(cost.alone, slower);
  cost.waves.block_time = stretched(cost.waves.block_time, slower);
  cost.waves.last_time = stretched(cost.waves.last_time, slower);
  cost.waves.early_time = stretched(cost.waves.early_time, slower);
}

/// What a kernel takes beyond its waves it takes at its beginning.
Device::Job& Device::start_job(Kernel& kernel, std::uint32_t sms, std::uint32_t waves) {
  const cost::KernelCost& cost = kernel.cost;
  const std::uint32_t before_last = (cost.waves.blocks - 1) / limits_.sms;
  const Duration last =
      cost.waves.last_time > Duration{0} ? cost.waves.last_time : cost.waves.block_time;
  const Duration start =
      kernel.began ? cost.waves.again : cost.alone - cost.waves.block_time * before_last - last;
  const Duration all = cost.waves.block_time * waves;
  jobs_.push_back({.kernel = &kernel,
                   .sms = sms,
                   .waves = waves,
                   .alone = start + all,
                   .since = engine_.now()});
  ++kernel.running;
  return jobs_.back();
}

/// Blocks of the last wave, on `sms` SMs: those that end sooner come last.
void Device::start_last(Kernel& kernel, std::uint32_t sms) {
  const cost::KernelCost& cost = kernel.cost;
  const std::uint32_t fuller =
      kernel.blocks_left - std::min(kernel.blocks_left, cost.waves.early_sms);
  const std::uint32_t longer = std::min(sms, fuller);
  if (longer > 0) {
    start_job(kernel, longer, 1).alone += cost.waves.last_time - cost.waves.block_time;
  }
  if (sms > longer) {
    start_job(kernel, sms - longer, 1).alone += cost.waves.early_time - cost.waves.block_time;
  }
  kernel.blocks_left -= sms;
}

/// A kernel of higher priority has come: the others' later waves go back to be given out in turn.
void Device::shorten_waves(int priority) {
  for (Job& job : jobs_) {
    Kernel& kernel = *job.kernel;
    if (job.waves == 1 || kernel.priority <= priority || kernel.cost.waves.keeps_its_sms) continue;
    if (kernel.cost.waves.block_time <= Duration{0}) continue;  // all of it is its start
    progress(job);
    const auto done = static_cast<double>(job.alone.count()) * (1 - job.remaining);
    const double wave = static_cast<double>(kernel.cost.waves.block_time.count());
    const double start = static_cast<double>(job.alone.count()) - wave * job.waves;
    const auto kept = static_cast<std::uint32_t>(
        std::clamp(std::ceil((done - start) / wave), 1.0, static_cast<double>(job.waves)));
    kernel.blocks_left += (job.waves - kept) * job.sms;
    job.alone -= kernel.cost.waves.block_time * (job.waves - kept);
    job.waves = kept;
    job.remaining = 1 - done / static_cast<double>(job.alone.count());
    job.speed = 0;  // to be set anew
  }
}

}  // namespace foretrace::sim
