// What each operation of the host, of order and of memory does. Kernels, copies and NCCL have files
// of their own. The meaning of every operation stands at its struct in
// scenarios/program/ops.h.
#include <fmt/format.h>

#include <algorithm>

#include "sim/host/thread.h"

namespace foretrace::sim {
// ---- host ----------------------------------------------------------------------------------

void HostThread::run(const HostCompute& op) { take({op.duration.eval(variables_)}); }

void HostThread::run(const FrameworkCall& op) {
  const cost::FrameworkCalls calls{op.work, op.count, program_.processes, op.queries, op.loop_us};
  const auto time_of = [&](Reading& read) { return cost::framework_time(read, calls); };
  take({world_.costs().of(calls), recorder_.banded(*current_.op, SpanOf::Call, calls, time_of)});
}

void HostThread::run(const HostFill& op) {
  const Bytes size = op.size.eval(variables_);
  wrote(op.dst.resolve(variables_), size);
  const Bytes fresh = touches(op.dst, size);
  take(price([&](Reading& read) { return cost::fill_time(read, size, fresh); }));
}

void HostThread::run(const HostBarrier& op) {
  const Barrier& declared = program_.barriers[op.barrier.value];
  BarrierState& barrier = world_.barrier(op.barrier);
  const auto parties = static_cast<std::size_t>(std::ranges::count_if(
      declared.parties, [&](const BarrierParty& party) { return world_.runs(party.process); }));
  if (++barrier.arrived == parties) {
    barrier.arrived = 0;
    // Before those that sleep: of threads that go on at one moment it is the first.
    take(price([](Reading& read) { return cost::wake_time(read, cost::Wait::Barrier); }));
    for (Waiter* waiter : std::exchange(barrier.waiting, {})) waiter->wake();
    return;
  }
  barrier.waiting.push_back(this);
  pending_wakes_ = 1;
  block({}, cost::Wait::Barrier,
        fmt::format("host_barrier{}: not everybody has arrived",
                    declared.name.empty() ? "" : " " + declared.name));
}

void HostThread::run(const HostSignal& op) {
  process_.signals[op.signal.resolve(variables_).value].give();
  take({});
}

void HostThread::run(const HostWait& op) {
  const SignalId id = op.signal.resolve(variables_);
  Semaphore& signal = process_.signals[id.value];
  if (signal.try_take()) {
    take({});
    return;
  }
  signal.wait(*this);
  pending_wakes_ = 1;
  block({}, cost::Wait::Signal,
        fmt::format("signal {}: no other thread has signalled", program_.signals[id.value].name));
}

// ---- host functions ---------------------------------------------------------------------------

void HostThread::run(const HostFunc& op) {
  StreamQueue& queue = stream(op.stream);
  if (held_up(queue)) return;
  const auto signal = [&](const std::optional<SignalRef>& ref) {
    return ref ? &process_.signals[ref->resolve(variables_).value] : nullptr;
  };
  const Priced call = price(begin_call(Param::HostLaunchHostFunc, queue));
  push(queue, call.time, cost::Entry::HostFunction,
       HostFuncWork{op.duration.eval(variables_), signal(op.wait), signal(op.signal)});
  take(call);
}

void HostThread::run(const Fault& op) {
  StreamQueue& queue = stream(op.stream);
  const Priced call = price(begin_call(Param::HostLaunchKernel, queue));
  push(queue, call.time, cost::Entry::Kernel, FaultWork{});
  take(call);
}

// ---- order ---------------------------------------------------------------------------------

void HostThread::run(const EventRecord& op) {
  StreamQueue& queue = stream(op.stream);
  if (held_up(queue)) return;
  const std::uint32_t event = op.event.resolve(variables_).value;
  const bool timed = program_.events[event].timing;
  const bool untimed = !timed && machine_.has(Param::HostEventRecordUntimed);
  const Param param = untimed ? Param::HostEventRecordUntimed : Param::HostEventRecord;
  const Priced call = price(begin_call(param, queue));
  TicketRef ticket{new Ticket};
  ticket->record = current_;
  ticket->stream = &queue;
  ticket->entries = queue.issued();
  ticket->timed = timed;
  process_.events[event] = ticket;
  push(queue, call.time, cost::Entry::NoTime, RecordWork{std::move(ticket)});
  take(call);
}

void HostThread::run(const StreamWaitEvent& op) {
  StreamQueue& queue = stream(op.stream);
  if (held_up(queue)) return;
  const Priced call = price(begin_call(Param::HostStreamWaitEvent, queue));
  const TicketRef& ticket = process_.events[op.event.resolve(variables_).value];
  // CUDA queues nothing for an event that has completed: seen on H200s.
  if (ticket != nullptr && !ticket->done) {
    push(queue, call.time, cost::Entry::NoTime, WaitWork{ticket});
  }
  take(call);
}

void HostThread::wait_for_event(Ticket* ticket, const std::string& name) {
  if (ticket != nullptr && ticket->stream != nullptr) {
    ticket->stream->seen_to(ticket->entries + 1);  // with the record itself
  }
  if (ticket != nullptr && !ticket->done) {
    ticket->waiters.push_back(this);
    pending_wakes_ = 1;
    waits_for_stream_ = ticket->stream;
  }
  synchronize(price(begin_call(Param::HostSynchronize)), cost::Wait::Event, device_,
              fmt::format("event {}", name));
}

void HostThread::run(const EventSynchronize& op) {
  const EventId id = op.event.resolve(variables_);
  wait_for_event(process_.events[id.value].get(), program_.events[id.value].name);
}

/// A query that finds the first `entries` of a stream completed tells how far that is. The driver
/// looks further while any stream of the device was given work since
/// (hw/laboratory/causes/event_queries.yaml, queries_behind_work.yaml,
/// queries_unsynchronized.yaml).
void HostThread::looks_further(cost::Call& query, StreamQueue& queue, std::uint64_t entries) {
  queue.seen_to(entries);
  World::for_each_stream(process_, queue.declared().device, [&](const StreamQueue& other) {
    query.finds_later_work |= other.has_unseen_work();
  });
}

cost::Call HostThread::query(const TicketRef& ticket) {
  cost::Call call = begin_call(Param::HostQuery);
  if (ticket != nullptr && ticket->done && ticket->stream != nullptr) {
    looks_further(call, *ticket->stream, ticket->entries);
  }
  return call;
}

void HostThread::run(const EventQuery& op) {
  take(price(query(process_.events[op.event.resolve(variables_).value])));
}

void HostThread::run(const StreamQuery& op) {
  StreamQueue& queue = stream(op.stream);
  cost::Call call = begin_call(Param::HostQuery);
  if (queue.pending() == 0) looks_further(call, queue, queue.issued());
  take(price(call));
}

void HostThread::run(const EventElapsedTime& op) {
  const TicketRef& start = process_.events[op.start.resolve(variables_).value];
  const TicketRef& end = process_.events[op.end.resolve(variables_).value];
  const bool both = start != nullptr && start->done && end != nullptr && end->done;
  if (both && is_timed(*current_.op)) {
    recorder_.elapsed(current_, process_.index, start->when, end->when);
  }
  take(price(begin_call(Param::HostElapsedTime)));
}

/// Polls: the call returns at the first poll at which the event is complete.
void HostThread::run(const EventWaitFor& op) {
  const EventId id = op.event.resolve(variables_);
  const TicketRef& ticket = process_.events[id.value];
  const cost::Call call = query(ticket);
  const TimePoint now = engine_.now();
  if (ticket == nullptr || ticket->done) {
    take(price(call));
    return;
  }
  const Duration timeout = op.timeout.eval(variables_);
  if (now - called_ >= timeout) {
    fail(fmt::format("event {} did not complete within {} us", program_.events[id.value].name,
                     to_us(timeout)));
    return;
  }
  retry_ = true;
  Reading read{machine_};
  const Duration next = cost::poll_time(read, call, op.poll.eval(variables_));
  engine_.queue().at(now + next, *this, kReturn);
}

void HostThread::run(const StreamSynchronize& op) {
  StreamQueue& queue = stream(op.stream);
  if (queue.waits_for_peers()) push(queue, Duration{0}, cost::Entry::NoTime, MarkerWork{});
  wait_for_stream(queue);
  synchronize(price(begin_call(Param::HostSynchronize, queue.declared().device)),
              cost::Wait::Device, queue.declared().device,
              fmt::format("stream {} to end its work", queue.declared().name));
}

void HostThread::run(const DeviceSynchronize& op) {
  const auto device = static_cast<std::uint32_t>(op.device.eval(variables_));
  World::for_each_stream(process_, device, [this](StreamQueue& queue) { wait_for_stream(queue); });
  synchronize(price(begin_call(Param::HostDeviceSynchronize, device)), cost::Wait::Device, device,
              fmt::format("device {} to end its work", device));
}

void HostThread::synchronize(Priced call, cost::Wait wait, std::uint32_t device,
                             std::string waits_for) {
  const Duration trim = trim_pool(device);
  call.time += trim;
  Reading read{machine_};
  block(call, cost::wake_time(read, wait) + trim, std::move(waits_for));
}

// ---- memory --------------------------------------------------------------------------------

/// The device whose context a call holds that is for this memory: the host's is the thread's own.
std::uint32_t HostThread::context_of(const BufferRef& memory) const {
  return buffer(memory).memory == MemoryKind::Device ? buffer(memory).device : device_;
}

Priced HostThread::sized_call(Param call, Param rate, const BufferRef& memory) {
  const Bytes size = buffer(memory).size;
  return holding_call(call, memory, [&](Reading& read, const cost::Call& made) {
    return cost::sized_call_time(read, made, rate, size);
  });
}

Priced HostThread::memory_call(SizedCall by_cuda, SizedCall by_nccl, const BufferRef& memory) {
  const bool is_nccls = buffer(memory).by_nccl && machine_.has(by_nccl.call);
  const SizedCall made = is_nccls ? by_nccl : by_cuda;
  return sized_call(made.call, made.rate, memory);
}

void HostThread::freed(std::uint32_t device, Bytes size) {
  Reading read{machine_};
  TimePoint& cleared = process_.cleared[device];
  cleared = std::max(cleared, engine_.now()) + cost::clear_time(read, size);
}

Duration HostThread::until_cleared(std::uint32_t device) const {
  return std::max(Duration{0}, process_.cleared[device] - engine_.now());
}

Duration HostThread::trim_pool(std::uint32_t device) {
  const Bytes given_back = process_.pools[device].trim();
  if (given_back.count == 0) return Duration{0};
  freed(device, given_back);
  Reading read{machine_};
  return cost::pool_trim_time(read, given_back, program_.processes - 1);
}

bool HostThread::shares_piece(bool shares, Param call) {
  if (!shares || !machine_.has(call)) return false;
  cost::Call made = begin_call(call);
  made.is_first = false;  // the driver was there for the piece
  const auto time_of = [&](Reading& read) { return cost::call_time(read, made); };
  take({world_.costs().of(made), recorder_.banded(*current_.op, SpanOf::InPiece, made, time_of)});
  return true;
}

void HostThread::run(const Malloc& op) {
  if (context_is_held(context_of(op.buffer))) return;
  const std::uint32_t id = op.buffer.resolve(variables_).value;
  const Buffer& memory = buffer(op.buffer);
  const bool found_room =
      !memory.by_nccl && process_.pieces[memory.device].allocate(id, memory.size);
  if (shares_piece(found_room, Param::HostMallocSmall)) return;
  Priced call = memory_call({Param::HostMalloc, Param::HostMallocPerByte},
                            {Param::NcclMemAlloc, Param::NcclMemAllocPerByte}, op.buffer);
  call.time += until_cleared(buffer(op.buffer).device);
  take(call);
}

void HostThread::run(const Free& op) {
  if (context_is_held(context_of(op.buffer))) return;
  const std::uint32_t device = buffer(op.buffer).device;
  World::for_each_stream(process_, device, [this](StreamQueue& queue) { wait_for_stream(queue); });
  if (pending_wakes_ > 0) {
    if (!std::exchange(waits_to_free_, true)) ++process_.contexts[device].frees;
    retry_ = true;
    block({}, Duration{0}, fmt::format("device {} to end its work (cudaFree)", device));
    return;
  }
  if (std::exchange(waits_to_free_, false)) --process_.contexts[device].frees;
  const bool leaves_others = process_.pieces[device].free(op.buffer.resolve(variables_).value);
  if (shares_piece(leaves_others, Param::HostFreeSmall)) return;
  const Priced call = memory_call({Param::HostFree, Param::HostFreePerByte},
                                  {Param::NcclMemFree, Param::NcclMemFreePerByte}, op.buffer);
  freed(device, buffer(op.buffer).size);
  take(call);
}

void HostThread::run(const MallocAsync& op) {
  const std::uint32_t device = buffer(op.buffer).device;
  const cost::Call made = begin_call_of_pool(Param::HostMallocAsync, device);
  const bool captured = capture_ != nullptr;
  const Bytes grown = captured ? Bytes{}
                               : process_.pools[device].allocate(
                                     op.buffer.resolve(variables_).value, buffer(op.buffer).size);
  Priced call = price(
      [&](Reading& read) {
        return cost::malloc_async_time(read, made, grown, program_.processes - 1);
      },
      made.is_first || grown.count > 0);
  if (grown.count > 0) call.time += until_cleared(device);
  process_.pool_calls_until[device] = engine_.now() + call.time;
  push(stream(op.stream), call.time, cost::Entry::NoTime, MarkerWork{});
  take(call);
}

void HostThread::run(const FreeAsync& op) {
  const std::uint32_t device = buffer(op.buffer).device;
  const Priced call = price(begin_call_of_pool(Param::HostFreeAsync, device));
  process_.pool_calls_until[device] = engine_.now() + call.time;
  const std::uint32_t id = op.buffer.resolve(variables_).value;
  if (capture_ == nullptr) process_.pools[device].free(id);
  push(stream(op.stream), call.time, cost::Entry::NoTime, MarkerWork{});
  take(call);
}

void HostThread::run(const HostAlloc& op) {
  if (context_is_held(context_of(op.buffer))) return;
  const std::uint32_t id = op.buffer.resolve(variables_).value;
  const bool found_room = process_.pinned_pieces.allocate(id, buffer(op.buffer).size);
  if (shares_piece(found_room, Param::HostAllocSmall)) return;
  take(sized_call(Param::HostAllocBase, Param::HostAllocBandwidth, op.buffer));
}

void HostThread::run(const HostFree& op) {
  if (context_is_held(context_of(op.buffer))) return;
  ++process_.host_frees;
  const bool leaves_others = process_.pinned_pieces.free(op.buffer.resolve(variables_).value);
  if (shares_piece(leaves_others, Param::HostFreeHostSmall)) return;
  take(sized_call(Param::HostFreeHostBase, Param::HostFreeHostBandwidth, op.buffer));
}

void HostThread::run(const HostRegister& op) {
  if (context_is_held(context_of(op.buffer))) return;
  process_.pinned[op.buffer.resolve(variables_).value] = true;
  const Bytes size = buffer(op.buffer).size;
  const Bytes fresh = touches(op.buffer, size, 0);
  take(holding_call(Param::HostRegisterBase, op.buffer, [&](Reading& read, const cost::Call& call) {
    return cost::register_time(read, call, size, fresh);
  }));
}

void HostThread::run(const HostUnregister& op) {
  if (context_is_held(context_of(op.buffer))) return;
  for (std::uint32_t device = 0; device < program_.devices; ++device) {
    World::for_each_stream(process_, device,
                           [this](StreamQueue& queue) { wait_for_stream(queue); });
  }
  if (pending_wakes_ > 0) {
    retry_ = true;
    block({}, Duration{0}, "the process' devices to end their work (cudaHostUnregister)");
    return;
  }
  process_.pinned[op.buffer.resolve(variables_).value] = false;
  take(sized_call(Param::HostUnregisterBase, Param::HostUnregisterBandwidth, op.buffer));
}

}  // namespace foretrace::sim
