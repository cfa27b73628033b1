// NCCL's launches: the call that makes them, captured or not, and CUDA_LAUNCH_BLOCKING.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "models/cost/kernel.h"
#include "scenarios/program/op_facts.h"
#include "sim/host/nccl_calls.h"

namespace foretrace::sim {

Duration NcclCalls::call_cost(Param param, std::uint32_t device) {
  const cost::Call& call = host_calls_.emplace_back(caller_.begin_call(param, device));
  return caller_.world().costs().of(call);
}

/// What a NCCL kernel takes longer since other kernels' memory evicted its code and its flags from
/// the level-2 cache, where the last one on its GPU had left them. They are little: they evict
/// nothing themselves.
Duration NcclCalls::cold_time(std::uint32_t device) {
  constexpr UsedMemory kOfNccl{.buffer = std::numeric_limits<std::uint32_t>::max(), .bytes = 1};
  const Caller::Passes passes = caller_.go_through(device, {&kOfNccl, 1});
  if (!caller_.machine().has(Param::NcclColdKernel) || !caller_.machine().has(Param::L2Size))
    return Duration{0};
  if (!caller_.machine().takes(Term::ColdNccl)) return Duration{0};
  Reading read{caller_.machine()};
  const double share = cost::missing_bytes(read, passes.front());
  return seconds_to_duration(share * read.seconds(Param::NcclColdKernel));
}

void NcclCalls::capture() {
  const std::vector<NcclCall> calls = std::exchange(calls_, {});
  Priced priced =
      caller_.price([&](Reading& read) { return cost::nccl_capture_time(read, calls.size()); });
  priced.time += std::exchange(mapping_, Duration{0});
  caller_.take(priced);
  for (const NcclCall& entry : calls) {
    const CommId handle = nccl_comm(entry.execution.op->kind)->resolve(entry.variables);
    caller_.world().communicator(caller_.program().comms[handle.value].communicator).set_captured();
  }
  caller_.capture()->capture(calls);
}

/// Queues the kernel, which the device sees so much later.
void NcclCalls::launch(const NcclKernel& kernel, Duration later) {
  NcclComm& comm = caller_.world().communicator(kernel.handle.communicator);
  const std::uint32_t rank = comm.rank_of({caller_.process().index, kernel.handle.device});
  Reading read{caller_.machine()};
  const Duration visible = later + cost::launch_latency(read, cost::Entry::Nccl);
  kernel.launch->set_cold(cold_time(kernel.handle.device));
  kernel.stream->push({kernel.execution, caller_.now() + visible, 0, 1, NcclWork{kernel.launch}});
  comm.last(rank) = {kernel.stream, kernel.stream->issued()};
}

void NcclCalls::launch_all() {
  if (caller_.capture() != nullptr) {
    capture();
    return;
  }
  launching_ = std::exchange(calls_, {});
  const Duration mapping = std::exchange(mapping_, Duration{0});
  const bool cold = !has_connected_ && caller_.program().warmup == 0 &&
                    caller_.machine().has(Param::NcclColdCall);
  const auto cold_call = [&](Reading& read) {
    return cold ? read.time(Param::NcclColdCall) : Duration{0};
  };
  Reading plain{caller_.machine()};
  Duration call = cold_call(plain) + mapping;
  host_calls_.clear();
  const auto itself = [](StreamQueue& stream) -> StreamQueue& { return stream; };
  kernels_ = prepare(launching_, itself, call);
  next_ = 0;
  // What NCCL's host side does for single channels and operations is a fixed part here.
  const bool connected = std::exchange(has_connected_, false);
  const auto calls_time = [&](Reading& read) {
    Duration time{0};
    for (const cost::Call& made : host_calls_) time += cost::call_time(read, made);
    return time;
  };
  const Duration rest = call - calls_time(plain) - cold_call(plain);
  const bool is_first = std::ranges::any_of(host_calls_, &cost::Call::is_first);
  call_ = {call, caller_
                     .price(
                         [&](Reading& read) {
                           const Duration time = rest + calls_time(read) + cold_call(read);
                           return connected ? time + read.time(Param::NcclConnect) : time;
                         },
                         is_first)
                     .detail};
  if (caller_.launches_block() && !kernels_.empty()) {
    stage_ = Stage::Launch;
    launch_next();
    return;
  }
  for (const NcclKernel& kernel : kernels_) launch(kernel, kernel.issued);
  kernels_.clear();
  caller_.take(call_);
}

/// With CUDA_LAUNCH_BLOCKING a thread launches the kernels of its devices one after the other, and
/// waits for each: one that needs the next never ends (nccl src/group.cc, doLaunches).
void NcclCalls::launch_next() {
  const NcclKernel& kernel = kernels_[next_];
  const Duration before = next_ == 0 ? Duration{0} : kernels_[next_ - 1].issued;
  const bool is_last = ++next_ == kernels_.size();
  launch(kernel, kernel.issued - before);
  caller_.wait_for_stream(*kernel.stream);
  if (is_last) stage_ = Stage::None;
  const Duration rest = is_last ? call_.time - before : Duration{0};
  caller_.block(
      {rest, call_.detail}, cost::Wait::Device,
      is_last && next_ == 1
          ? std::string{"NCCL's kernel (CUDA_LAUNCH_BLOCKING)"}
          : fmt::format("NCCL's kernel {} of {} of the group (CUDA_LAUNCH_BLOCKING), before it "
                        "launches the next",
                        next_, kernels_.size()));
  if (is_last) kernels_.clear();
}

}  // namespace foretrace::sim
