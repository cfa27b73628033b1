#include "sim/host/functions.h"

#include <algorithm>
#include <cmath>

namespace foretrace::sim {

void HostFunctions::run(const HostFuncWork& work, TimePoint queued, bool follows, Owner& owner) {
  jobs_.push_back({&work, &owner, engine_.now() + delay(queued, follows)});
  if (!busy_) next();
}

void HostFunctions::next() {
  busy_ = !jobs_.empty();
  if (busy_) engine_.queue().at(std::max(jobs_.front().noticed, engine_.now()), *this, kNoticed);
}

/// The driver's thread looks whether the stream has arrived, and sleeps longer and longer between
/// looks: measured on H200s, a function behind a kernel of 400 us begins 40 to 580 us after it.
Duration HostFunctions::delay(TimePoint queued, bool follows) const {
  if (follows) return machine_.time(Param::HostFuncNext);
  const Duration latency = machine_.time(Param::HostFuncLatency);
  const Duration waited = engine_.now() - std::max(queued, last_end_);
  if (waited <= Duration{0}) return latency;
  const double share = machine_.get(Param::HostFuncBackoff).value;
  return latency + machine_.time(Param::HostFuncPoll) +
         Duration{std::llround(static_cast<double>(waited.count()) * share)};
}

/// The function has what it waited for.
void HostFunctions::wake() {
  engine_.queue().at(engine_.now() + jobs_.front().work->duration, *this, kReturned);
}

void HostFunctions::fire(std::uint64_t what) {
  if (what == kNoticed) {
    const Job& job = jobs_.front();
    job.owner->host_function_began();
    Semaphore* wait = job.work->wait;
    if (wait == nullptr || wait->try_take()) {
      wake();
    } else {
      wait->wait(*this);
    }
    return;
  }
  const Job job = jobs_.front();
  jobs_.pop_front();
  last_end_ = engine_.now();
  if (job.work->signal != nullptr) job.work->signal->give();
  job.owner->host_function_ended();  // the work is gone after this
  next();
}

}  // namespace foretrace::sim
