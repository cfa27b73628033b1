#include "sim/device.h"

#include <algorithm>
#include <cmath>

#include "scenarios/errors.h"

namespace foretrace::sim {

void Device::start(KernelOwner& owner, const KernelCost& cost) {
  add({.owner = &owner, .cost = cost, .since = engine_.now()});
}

void Device::occupy(KernelOwner& owner, std::uint32_t sms) {
  const KernelCost cost{Duration{0}, std::min(sms, limits_.sms), 0};
  add({.owner = &owner, .cost = cost, .held = true, .since = engine_.now()});
}

void Device::release(KernelOwner& owner) {
  const auto at = std::ranges::find(jobs_, &owner, &Job::owner);
  FORETRACE_CHECK(at != jobs_.end(), "only a running kernel is released");
  remove(static_cast<std::size_t>(at - jobs_.begin()));
}

void Device::add(Job job) {
  jobs_.push_back(job);
  share();
}

void Device::remove(std::size_t index) {
  KernelOwner* owner = jobs_[index].owner;
  jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(index));
  if (!jobs_.empty()) share();
  owner->kernel_ended();
}

void Device::fire(std::uint64_t version) {
  const auto at = std::ranges::find(jobs_, version, &Job::version);
  if (at == jobs_.end()) return;  // the rate changed since: a later event ends this kernel
  remove(static_cast<std::size_t>(at - jobs_.begin()));
}

void Device::share() {
  std::uint32_t free_sms = limits_.sms;
  for (Job& job : jobs_) {
    const bool all_or_nothing = job.held && !job.began;
    job.sms = all_or_nothing && job.cost.sms > free_sms ? 0 : std::min(job.cost.sms, free_sms);
    free_sms -= job.sms;
  }
  share_memory_bandwidth();
  // An owner may start further work from within: only this call's jobs are told, by position.
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (jobs_[i].began || jobs_[i].sms == 0) continue;
    jobs_[i].began = true;
    jobs_[i].owner->kernel_began();
  }
}

void Device::share_memory_bandwidth() {
  // Max-min: kernels that want less than an equal share get it all, the others split the rest.
  double left = limits_.hbm_bytes_per_second;
  std::vector<std::pair<double, Job*>> demands;
  demands.reserve(jobs_.size());
  for (Job& job : jobs_) {
    const double by_sms = static_cast<double>(job.sms) / std::max(1u, job.cost.sms);
    demands.emplace_back(job.cost.hbm_bytes_per_second * by_sms, &job);
  }
  std::ranges::stable_sort(demands, {}, &std::pair<double, Job*>::first);
  std::size_t others = demands.size();
  for (const auto& [demand, job] : demands) {
    const double share = std::min(demand, left / static_cast<double>(others--));
    left -= share;
    const double by_sms = static_cast<double>(job->sms) / std::max(1u, job->cost.sms);
    update(*job, demand > 0 ? by_sms * share / demand : by_sms);
  }
}

void Device::update(Job& job, double speed) {
  if (job.held || speed == job.speed) return;
  const TimePoint now = engine_.now();
  const double alone = static_cast<double>(job.cost.alone.count());
  if (job.speed > 0 && alone > 0) {
    job.remaining -= static_cast<double>((now - job.since).count()) * job.speed / alone;
  }
  job.since = now;
  job.speed = speed;
  job.version = ++next_version_;
  if (speed <= 0) return;
  const double left = std::max(0.0, job.remaining) * alone / speed;
  engine_.queue().at(now + Duration{std::llround(left)}, *this, job.version);
}

Device::CopyEngine& Device::copy_engine(std::uint32_t kind) {
  const std::size_t engine = limits_.copy_engines <= 1 ? 0 : kind;
  if (engine >= copy_engines_.size()) copy_engines_.resize(engine + 1);
  return copy_engines_[engine];
}

void Device::acquire_copy_engine(std::uint32_t engine, CopyOwner& owner) {
  CopyEngine& which = copy_engine(engine);
  if (which.busy != nullptr) {
    which.waiting.push_back(&owner);
    return;
  }
  which.busy = &owner;
  owner.copy_engine_free();
}

void Device::release_copy_engine(std::uint32_t engine) {
  CopyEngine& which = copy_engine(engine);
  which.busy = nullptr;
  if (which.waiting.empty()) return;
  which.busy = which.waiting.front();
  which.waiting.pop_front();
  which.busy->copy_engine_free();
}

}  // namespace foretrace::sim
