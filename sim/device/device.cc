#include "sim/device/device.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cmath>
#include <utility>

#include "scenarios/base/text/errors.h"

namespace foretrace::sim {

void Device::start(KernelOwner& owner, const cost::KernelCost& cost, int priority, bool in_graph) {
  Kernel kernel{.owner = &owner,
                .cost = cost,
                .priority = priority,
                .in_graph = in_graph,
                .blocks_left = cost.waves.blocks};
  if (const double times = slowness(); times != 1) {
    kernel.cost.alone = stretched(cost.alone, times);
    kernel.cost.waves.block_time = stretched(cost.waves.block_time, times);
    kernel.cost.waves.last_time = stretched(cost.waves.last_time, times);
    kernel.cost.waves.early_time = stretched(cost.waves.early_time, times);
    kernel.cost.then = stretched(cost.then, times);
    kernel.cost.hbm_bytes_per_second /= times;
  }
  add(kernel);
}

/// Of the next kernel: of a slow GPU, and of one whose kernels are not all alike (splitmix64).
double Device::slowness() {
  if (limits_.jitter == 0) return limits_.slowness;
  std::uint64_t bits = limits_.seed + ++started_ * 0x9e3779b97f4a7c15U;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
  const double uniform = static_cast<double>((bits ^ (bits >> 31)) >> 11) * 0x1p-53;
  return limits_.slowness * (1 + limits_.jitter * uniform);
}

void Device::occupy(KernelOwner& owner, std::uint32_t sms, int priority) {
  cost::KernelCost cost;
  cost.sms = std::min(sms, limits_.sms);
  Kernel kernel{.owner = &owner, .cost = cost, .priority = priority, .held = true};
  add(kernel);
}

void Device::release(KernelOwner& owner) {
  const auto at =
      std::ranges::find(kernels_, &owner, [](const auto& kernel) { return kernel->owner; });
  FORETRACE_CHECK(at != kernels_.end(), "only a running kernel is released");
  end(**at);
}

void Device::add(Kernel& kernel) {
  const Duration wait = wait_for_places(kernel);
  if (wait == Duration{0}) {
    place(kernel);
    return;
  }
  waiting_.push_back({kernel, ++next_version_});
  engine_.queue().at(engine_.now() + wait, *this, next_version_);
}

void Device::place(const Kernel& kernel) {
  shorten_waves(kernel.priority);
  const auto place = std::ranges::upper_bound(kernels_, kernel.priority, {},
                                              [](const auto& other) { return other->priority; });
  if (spare_.empty()) spare_.push_back(std::make_unique<Kernel>());
  *spare_.back() = kernel;
  kernels_.insert(place, std::move(spare_.back()));
  spare_.pop_back();
  share();
}

/// The kernel that follows in the same call.
void Device::go_on(Kernel& kernel) {
  const auto at = std::ranges::find(kernels_, &kernel, [](const auto& each) { return each.get(); });
  Kernel next = kernel;
  next.cost.alone = std::exchange(next.cost.then, Duration{0});
  next.cost.waves.blocks = 0;
  spare_.push_back(std::move(*at));
  kernels_.erase(at);
  place(next);
}

void Device::end(Kernel& kernel) {
  KernelOwner* owner = kernel.owner;
  if (kernel.waited) {
    waited_ = owner;
    waited_until_ = engine_.now();
  }
  const auto at = std::ranges::find(kernels_, &kernel, [](const auto& each) { return each.get(); });
  spare_.push_back(std::move(*at));
  kernels_.erase(at);
  set_clock();
  memory_used_ = 0;
  if (!kernels_.empty()) share();
  owner->kernel_ended();
}

void Device::fire(std::uint64_t version) {
  if (version == kLookAgain) {
    if (!jobs_.empty()) share();
    return;
  }
  const auto waits = std::ranges::find(waiting_, version, &Waiting::version);
  if (waits != waiting_.end()) {
    const Kernel kernel = waits->kernel;
    waiting_.erase(waits);
    place(kernel);
    return;
  }
  const auto at = std::ranges::find(jobs_, version, &Job::version);
  if (at == jobs_.end()) return;  // its speed changed since: a later event ends it
  Kernel& kernel = *at->kernel;
  const std::uint32_t takes_more = std::min(at->sms, kernel.tiles_of_nobody);
  jobs_.erase(at);
  --kernel.running;
  if (takes_more > 0) {
    kernel.tiles_of_nobody -= takes_more;
    start_job(kernel, takes_more, 1);
  }
  if (kernel.blocks_left > 0 || kernel.running > 0) {
    share();
  } else if (kernel.cost.then > Duration{0}) {
    go_on(kernel);
  } else {
    end(kernel);
  }
}

void Device::share() {
  std::uint32_t free_sms = limits_.sms;
  for (const Job& job : jobs_) {
    if (job.kernel->cost.waves.blocks > 0) free_sms -= job.sms;
  }
  free_sms -= held_sms();
  std::uint32_t in_use = 0;  // by last blocks, which leave some room
  for (const Job& job : jobs_) {
    if (in_last_blocks(job)) in_use += job.sms;
  }
  boost::container::small_vector<KernelOwner*, 8> begun;
  bool clusters_wait = false;  // for SMs beside each other: products behind them do not take those
  for (const auto& kernel : kernels_) {
    if (clusters_wait && kernel->cost.waves.staggers && !kernel->began) continue;
    const std::uint32_t whole_sms = free_sms - std::min(in_use, free_sms);
    std::uint32_t given = 0;
    if (kernel->held) {
      given = std::min(whole_sms, kernel->cost.sms - kernel->held_sms);
      kernel->held_sms += given;
    } else if (kernel->cost.waves.blocks > 0) {
      given = give_blocks(*kernel, whole_sms);
    } else {
      given = give_share(*kernel, free_sms);
    }
    clusters_wait |= kernel->cost.waves.keeps_its_sms && !kernel->began && given == 0;
    free_sms -= std::min(given, free_sms);
    const bool begins = kernel->held ? kernel->held_sms == kernel->cost.sms : kernel->running > 0;
    if (begins && !std::exchange(kernel->began, true)) begun.push_back(kernel->owner);
  }
  if (!begun.empty()) set_clock();
  share_memory_bandwidth();
  look_again_at_last_blocks();
  for (KernelOwner* owner : begun) owner->kernel_began();
}

/// Kernels that wait get SMs as soon as all blocks of a memory-bound one have begun.
void Device::look_again_at_last_blocks() {
  const bool somebody_waits =
      std::ranges::any_of(kernels_, [](const auto& kernel) { return !kernel->began; });
  if (!somebody_waits) return;
  for (const Job& job : jobs_) {
    if (job.kernel->cost.room.last_blocks == Duration{0} || job.speed <= 0 || in_last_blocks(job))
      continue;
    const TimePoint then = engine_.now() + left(job) - job.kernel->cost.room.last_blocks;
    if (then == looks_again_) continue;
    looks_again_ = then;
    engine_.queue().at(then, *this, kLookAgain);
  }
}

/// The kernel that would pull it down the most decides.
void Device::set_clock() {
  const cost::KernelCost* most = nullptr;
  for (const auto& kernel : kernels_) {
    if (!kernel->began || kernel->held) continue;
    if (most == nullptr || kernel->cost.clock.lost > most->clock.lost) most = &kernel->cost;
  }
  if (most == nullptr) {
    clock_.rest(engine_.now());
  } else {
    clock_.towards(engine_.now(), most->clock.lost, most->clock.averages);
  }
}

/// Until the job ends, as it runs now.
Duration Device::left(const Job& job) const {
  const auto passed = static_cast<double>((engine_.now() - job.since).count());
  const double all = static_cast<double>(job.alone.count()) / job.speed;
  return Duration{std::llround(std::max(0.0, job.remaining * all - passed))};
}

void Device::progress(Job& job) {
  const TimePoint now = engine_.now();
  const auto alone = static_cast<double>(job.alone.count());
  if (job.speed > 0 && alone > 0) {
    job.remaining -= static_cast<double>((now - job.since).count()) * job.speed / alone;
  }
  job.since = now;
}

void Device::update(Job& job, double speed) {
  if (speed == job.speed) return;
  progress(job);
  job.speed = speed;
  job.version = ++next_version_;
  if (speed <= 0) return;
  const double left = std::max(0.0, job.remaining) * static_cast<double>(job.alone.count()) / speed;
  engine_.queue().at(engine_.now() + Duration{std::llround(left)}, *this, job.version);
}

}  // namespace foretrace::sim
