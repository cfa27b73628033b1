// What each operation of the host, of kernels, of order and of memory does. Copies and NCCL have
// files of their own. The meaning of every operation stands at its struct in scenarios/program/ops.h.
#include <fmt/format.h>

#include <algorithm>

#include "models/cost/kernel_cost.h"
#include "sim/host/thread.h"

namespace foretrace::sim {
// ---- host ----------------------------------------------------------------------------------

void HostThread::run(const HostCompute& op) { take(op.duration.eval(variables_)); }

void HostThread::run(const HostFill& op) {
  const Bytes size = op.size.eval(variables_);
  touched(op.dst.resolve(variables_), size, false);
  Duration cost = at_rate(size, machine_.rate(Param::HostFillBandwidth));
  if (buffer(op.dst).memory == MemoryKind::FreshPageable) {
    cost += at_rate(size, machine_.rate(Param::HostTouchBandwidth));
  }
  take(cost);
}

void HostThread::run(const HostBarrier& op) {
  const Barrier& declared = program_.barriers[op.barrier.value];
  BarrierState& barrier = world_.barrier(op.barrier);
  const Duration cost = machine_.time(Param::HostBarrier);
  if (++barrier.arrived == declared.parties.size()) {
    barrier.arrived = 0;
    for (Waiter* waiter : std::exchange(barrier.waiting, {})) waiter->wake();
    take(cost);
    return;
  }
  barrier.waiting.push_back(this);
  pending_wakes_ = 1;
  block(Duration{0}, cost,
        fmt::format("host_barrier{}: not everybody has arrived",
                    declared.name.empty() ? "" : " " + declared.name));
}

void HostThread::run(const HostSignal& op) {
  process_.signals[op.signal.resolve(variables_).value].give();
  take(Duration{0});
}

void HostThread::run(const HostWait& op) {
  const SignalId id = op.signal.resolve(variables_);
  Semaphore& signal = process_.signals[id.value];
  if (signal.try_take()) {
    take(Duration{0});
    return;
  }
  signal.wait(*this);
  pending_wakes_ = 1;
  block(Duration{0}, machine_.time(Param::HostSignal),
        fmt::format("signal {}: no other thread has signalled", program_.signals[id.value].name));
}

// ---- kernels -------------------------------------------------------------------------------

void HostThread::kernel(const StreamRef& ref, Duration call, const KernelCost& cost) {
  StreamQueue& queue = stream(ref);
  if (queue_full(queue)) return;
  call += device_switch(queue.declared().device);
  push(queue, call, machine_.time(Param::LaunchLatency), KernelWork{cost});
  if (launches_block_) wait_for_stream(queue);
  block(call, machine_.time(Param::HostWake), "the kernel (CUDA_LAUNCH_BLOCKING)");
}

void HostThread::run(const Spin& op) {
  kernel(op.stream, call_cost(Param::HostLaunchKernel),
         spin_cost(machine_, op.duration.eval(variables_), op.blocks));
}

void HostThread::run(const Gemm& op) {
  kernel(op.stream, call_cost(Param::HostLaunchGemm),
         gemm_cost(machine_, op.type, op.m.eval(variables_), op.n.eval(variables_),
                   op.k.eval(variables_)));
}

void HostThread::run(const HostFunc& op) {
  StreamQueue& queue = stream(op.stream);
  if (queue_full(queue)) return;
  const auto signal = [&](const std::optional<SignalRef>& ref) {
    return ref ? &process_.signals[ref->resolve(variables_).value] : nullptr;
  };
  const Duration call =
      call_cost(Param::HostLaunchHostFunc) + device_switch(queue.declared().device);
  push(queue, call, Duration{0},
       HostFuncWork{op.duration.eval(variables_), signal(op.wait), signal(op.signal)});
  take(call);
}

void HostThread::run(const Fault& op) {
  StreamQueue& queue = stream(op.stream);
  const Duration call = call_cost(Param::HostLaunchKernel);
  push(queue, call, machine_.time(Param::LaunchLatency), FaultWork{});
  take(call);
}

void HostThread::run(const Elementwise& op) {
  kernel(op.stream, call_cost(Param::HostLaunchKernel),
         elementwise_cost(machine_, op.size.eval(variables_),
                          static_cast<std::uint32_t>(op.sources.size())));
}

void HostThread::run(const Reduction& op) {
  kernel(op.stream, call_cost(Param::HostLaunchKernel),
         reduction_cost(machine_, op.size.eval(variables_)));
}

// ---- order ---------------------------------------------------------------------------------

void HostThread::run(const EventRecord& op) {
  StreamQueue& queue = stream(op.stream);
  if (queue_full(queue)) return;
  const Duration call = call_cost(Param::HostEventRecord) + device_switch(queue.declared().device);
  TicketRef ticket{new Ticket};
  ticket->record = current_;
  ticket->stream = &queue;
  process_.events[op.event.resolve(variables_).value] = ticket;
  push(queue, call, Duration{0}, RecordWork{std::move(ticket)});
  take(call);
}

void HostThread::run(const StreamWaitEvent& op) {
  StreamQueue& queue = stream(op.stream);
  if (queue_full(queue)) return;
  const Duration call =
      call_cost(Param::HostStreamWaitEvent) + device_switch(queue.declared().device);
  const TicketRef& ticket = process_.events[op.event.resolve(variables_).value];
  // CUDA queues nothing for an event that has completed: seen on H200s.
  if (ticket != nullptr && !ticket->done) push(queue, call, Duration{0}, WaitWork{ticket});
  take(call);
}

void HostThread::wait_for_event(Ticket* ticket, const std::string& name) {
  if (ticket != nullptr && !ticket->done) {
    ticket->waiters.push_back(this);
    pending_wakes_ = 1;
    waits_for_stream_ = ticket->stream;
  }
  block(call_cost(Param::HostSynchronize), machine_.time(Param::HostWakeEvent),
        fmt::format("event {}", name));
}

void HostThread::run(const EventSynchronize& op) {
  const EventId id = op.event.resolve(variables_);
  wait_for_event(process_.events[id.value].get(), program_.events[id.value].name);
}

void HostThread::run(const EventQuery&) { take(call_cost(Param::HostQuery)); }
void HostThread::run(const StreamQuery&) { take(call_cost(Param::HostQuery)); }
void HostThread::run(const EventElapsedTime&) { take(call_cost(Param::HostElapsedTime)); }

/// Polls: the call returns at the first poll at which the event is complete.
void HostThread::run(const EventWaitFor& op) {
  const EventId id = op.event.resolve(variables_);
  const TicketRef& ticket = process_.events[id.value];
  const Duration query = call_cost(Param::HostQuery);
  const TimePoint now = engine_.now();
  if (ticket == nullptr || ticket->done) {
    take(query);
    return;
  }
  const Duration timeout = op.timeout.eval(variables_);
  if (now - called_ >= timeout) {
    fail(fmt::format("event {} did not complete within {} us", program_.events[id.value].name,
                     to_us(timeout)));
    return;
  }
  retry_ = true;
  engine_.queue().at(now + std::max(query, op.poll.eval(variables_)), *this, kReturn);
}

void HostThread::run(const StreamSynchronize& op) {
  StreamQueue& queue = stream(op.stream);
  if (queue.waits_for_peers()) push(queue, Duration{0}, Duration{0}, MarkerWork{});
  wait_for_stream(queue);
  block(call_cost(Param::HostSynchronize) + device_switch(queue.declared().device),
        machine_.time(Param::HostWake),
        fmt::format("stream {} to end its work", queue.declared().name));
}

void HostThread::run(const DeviceSynchronize& op) {
  const auto device = static_cast<std::uint32_t>(op.device.eval(variables_));
  World::for_each_stream(process_, device, [this](StreamQueue& queue) { wait_for_stream(queue); });
  block(call_cost(Param::HostDeviceSynchronize) + device_switch(device),
        machine_.time(Param::HostWake), fmt::format("device {} to end its work", device));
}

// ---- memory --------------------------------------------------------------------------------

void HostThread::run(const Malloc& op) {
  const Buffer& memory = buffer(op.buffer);
  take(call_cost(Param::HostMalloc) +
       at_rate(memory.size, machine_.rate(Param::HostMallocPerByte)));
}

void HostThread::run(const Free& op) {
  const Buffer& memory = buffer(op.buffer);
  World::for_each_stream(process_, memory.device,
                         [this](StreamQueue& queue) { wait_for_stream(queue); });
  const Duration cost =
      call_cost(Param::HostFree) + at_rate(memory.size, machine_.rate(Param::HostFreePerByte));
  block(cost, cost, fmt::format("device {} to end its work (cudaFree)", memory.device));
}

void HostThread::run(const MallocAsync& op) {
  const Duration call = call_cost(Param::HostMallocAsync);
  push(stream(op.stream), call, Duration{0}, MarkerWork{});
  take(call);
}

void HostThread::run(const FreeAsync& op) {
  const Duration call = call_cost(Param::HostFreeAsync);
  push(stream(op.stream), call, Duration{0}, MarkerWork{});
  take(call);
}

void HostThread::run(const HostAlloc& op) {
  take(call_cost(Param::HostAllocBase) +
       at_rate(buffer(op.buffer).size, machine_.rate(Param::HostAllocBandwidth)));
}

void HostThread::run(const HostFree& op) {
  take(call_cost(Param::HostFreeHostBase) +
       at_rate(buffer(op.buffer).size, machine_.rate(Param::HostFreeHostBandwidth)));
}

void HostThread::run(const HostRegister& op) {
  process_.pinned[op.buffer.resolve(variables_).value] = true;
  take(call_cost(Param::HostRegisterBase) +
       at_rate(buffer(op.buffer).size, machine_.rate(Param::HostRegisterBandwidth)));
}

}  // namespace foretrace::sim
