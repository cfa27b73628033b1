#include "sim/host/functions.h"

#include <algorithm>

#include "models/cost/host.h"

namespace foretrace::sim {

void HostFunctions::run(const HostFuncWork& work, TimePoint queued, bool follows, Owner& owner) {
  Reading read{machine_};
  const Duration waited = engine_.now() - std::max(queued, last_end_);
  jobs_.push_back(
      {&work, &owner, engine_.now() + cost::host_function_delay(read, follows, waited)});
  if (!busy_) next();
}

void HostFunctions::next() {
  busy_ = !jobs_.empty();
  if (busy_) engine_.queue().at(std::max(jobs_.front().noticed, engine_.now()), *this, kNoticed);
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
