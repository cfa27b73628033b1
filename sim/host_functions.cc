#include "sim/host_functions.h"

namespace foretrace::sim {

void HostFunctions::run(const HostFuncWork& work, Owner& owner) {
  jobs_.push_back({&work, &owner});
  if (jobs_.size() == 1) begin();
}

void HostFunctions::begin() {
  const Job& job = jobs_.front();
  job.owner->host_function_began();
  Semaphore* wait = job.work->wait;
  if (wait != nullptr && !wait->try_take()) {
    wait->wait(*this);
    return;
  }
  wake();
}

/// The function has what it waited for.
void HostFunctions::wake() {
  engine_.queue().at(engine_.now() + jobs_.front().work->duration, *this, 0);
}

void HostFunctions::fire(std::uint64_t) {
  const Job job = jobs_.front();
  jobs_.pop_front();
  if (job.work->signal != nullptr) job.work->signal->give();
  job.owner->host_function_ended();  // the work is gone after this
  if (!jobs_.empty()) begin();
}

}  // namespace foretrace::sim
