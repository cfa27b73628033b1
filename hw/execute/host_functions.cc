#include "hw/execute/host_functions.h"

#include <algorithm>

#include "hw/trace/clock.h"

namespace foretrace::hw {

HostFunctionCall& HostFunctions::next() {
  if (used_ == calls_.size()) calls_.emplace_back();
  HostFunctionCall& call = calls_[used_++];
  call.owner = this;
  call.runs.clear();  // keeps its capacity
  if (call.runs.capacity() == 0) call.runs.reserve(1);
  return call;
}

void CUDART_CB HostFunctions::run(void* argument) {
  auto& call = *static_cast<HostFunctionCall*>(argument);
  const std::int64_t begin_ns = now_ns();
  Signals& signals = call.owner->signals_;
  if (call.wait && !call.owner->wait_for_signal(call)) return;
  if (call.duration_ns > 0) wait_until(now_ns() + call.duration_ns);
  if (call.signal) signals.signal(*call.signal);
  call.runs.push_back({begin_ns, now_ns()});
}

bool HostFunctions::wait_for_signal(const HostFunctionCall& call) {
  if (signals_.try_take(*call.wait)) return true;
  {
    const std::scoped_lock lock{mutex_};
    waiting_.push_back(call.execution);
  }
  const bool taken = signals_.wait(*call.wait);
  const std::scoped_lock lock{mutex_};
  waiting_.erase(std::ranges::find(waiting_, call.execution));
  return taken;
}

std::vector<DeviceActivity> HostFunctions::activities() const {
  std::vector<DeviceActivity> result;
  for (std::size_t i = 0; i < used_; ++i) {
    const HostFunctionCall& call = calls_[i];
    std::vector<Execution> launches;
    if (call.graph != nullptr) launches = call.graph->launches(call.capture);
    for (std::size_t k = 0; k < call.runs.size(); ++k) {
      DeviceActivity& activity = result.emplace_back();
      activity.kind = DeviceActivity::Kind::HostFunction;
      activity.cause = k < launches.size() ? launches[k] : call.execution;
      activity.begin_ns = call.runs[k].begin_ns;
      activity.end_ns = call.runs[k].end_ns;
      activity.ordinal = call.ordinal;
    }
  }
  std::ranges::stable_sort(result, {}, &DeviceActivity::begin_ns);
  return result;
}

std::vector<Execution> HostFunctions::waiting() const {
  const std::scoped_lock lock{mutex_};
  return waiting_;
}

}  // namespace foretrace::hw
