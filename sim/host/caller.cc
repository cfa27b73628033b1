#include "sim/host/caller.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scenarios/program/environment.h"
#include "scenarios/program/op_facts.h"

namespace foretrace::sim {

Caller::Caller(Engine& engine, World& world, Recorder& recorder, const Machine& machine,
               const Program& program, const foretrace::HostThread& declared, std::uint32_t process)
    : engine_{engine},
      world_{world},
      recorder_{recorder},
      machine_{machine},
      program_{program},
      declared_{declared},
      process_{world.process(process)},
      lane_{recorder.add_lane({LaneKind::HostThread, node_of_process(program, process), process,
                               kNoDevice, declared.name})},
      launches_block_{blocks_launches(program.environment)},
      slot_{process_.in_call_until.size()} {
  process_.in_call_until.emplace_back();
  made_.resize(kParamCount);
  variables_.push_back(process);
}

void Caller::take(Priced call) {
  const TimePoint end = engine_.now() + call.time;
  recorder_.span(lane_, current_, 0, called_, end, call.detail);
  engine_.queue().at(end, *this, kNext);
}

void Caller::block(Priced call, Duration wake_time, std::string waits_for) {
  if (pending_wakes_ == 0) {
    take(call);
    return;
  }
  earliest_return_ = engine_.now() + call.time;
  wake_time_ = wake_time;
  waits_for_ = std::move(waits_for);
}

void Caller::wake() {
  if (--pending_wakes_ > 0) return;
  TimePoint end = std::max(earliest_return_, engine_.now() + wake_time_);
  for (const Connection* connection : connections_) end = std::max(end, connection->ready);
  engine_.queue().at(end, *this, kReturn);
}

void Caller::wait_for_stream(StreamQueue& stream) {
  stream.seen_to(stream.issued());
  if (stream.pending() == 0) return;
  stream.wait_for_count(stream.issued(), *this);
  ++pending_wakes_;
  waits_for_stream_ = &stream;
}

void Caller::look_again(TimePoint until) {
  retry_ = true;
  engine_.queue().at(until + machine_.time(Param::HostWake), *this, kReturn);
}

/// Who holds it again at once has it before those who wait. While a thread waits for the device in
/// cudaFree nobody gets it; who synchronizes, asks or takes memory of a warm pool lets others go on
/// (hw/laboratory/causes/beside_a_wait.py on an H200).
bool Caller::context_is_held(std::uint32_t device) {
  if (capture_ != nullptr || !has_other_threads()) return false;
  Process::HeldContext& context = process_.contexts[device];
  const bool held = context.until > engine_.now();
  if (held != (awaited_ == &context)) {
    if (awaited_ != nullptr) --awaited_->waiting;
    awaited_ = held ? &context : nullptr;
    if (held) ++context.waiting;
  }
  if (held) {
    look_again(context.until);
    return true;
  }
  if (context.frees <= (waits_to_free_ ? 1U : 0U)) return false;
  StreamQueue* busy = nullptr;
  World::for_each_stream(process_, device, [&](StreamQueue& one) {
    if (one.pending() > 0) busy = &one;
  });
  if (busy == nullptr) return false;
  wait_for_entry(*busy, busy->issued(), "another thread's cudaFree, for the end");
  return true;
}

bool Caller::waits_for_context(std::uint32_t device) {
  const bool held = context_is_held(device);
  retry_ = false;
  return held;
}

void Caller::hold_context(cost::Call& call, std::uint32_t device) {
  if (process_.contexts[device].waiting > 0) call.others = std::max(call.others, 1U);
}

/// A stream holds so many entries; the call that would add another waits for room.
bool Caller::held_up(StreamQueue& stream) {
  if (capture_ != nullptr) return false;
  if (context_is_held(stream.declared().device)) return true;
  const std::uint64_t depth = machine_.count(Param::LaunchQueueDepth);
  if (stream.pending() < depth) return false;
  wait_for_entry(stream, stream.issued() - depth + 1, "room in the full launch queue");
  return true;
}

/// Then the call is made again.
void Caller::wait_for_entry(StreamQueue& stream, std::uint64_t count, std::string_view what) {
  stream.wait_for_count(count, *this);
  pending_wakes_ = 1;
  waits_for_stream_ = &stream;
  retry_ = true;
  block({}, Duration{0}, fmt::format("{} of stream {}", what, stream.declared().name));
}

cost::Call Caller::begin_call(Param param) {
  cost::Call call{.param = param};
  behind_ = Duration{0};
  if (capture_ != nullptr) {
    call.is_captured = true;
    // cuBLAS looks for its kernel all the same.
    if (param == Param::HostLaunchGemm) made_[static_cast<std::size_t>(param)] = true;
    return call;
  }
  // What torch.distributed does inside a call is not called from Python; the call itself is.
  call.is_inner = current_.op->lowered && param != Param::NcclHostCollective;
  const auto kind = static_cast<std::size_t>(param);
  call.is_first = !made_[kind];
  made_[kind] = true;
  // PyTorch's calls were measured in two processes at once.
  if (!call.is_inner && !machine_.is_replaced(param)) call.processes = program_.processes - 1;
  auto& until = process_.in_call_until;
  if (!has_other_threads() || !machine_.has(Param::HostContention)) return call;
  const TimePoint now = engine_.now();
  for (std::size_t i = 0; i < until.size(); ++i) {
    call.others += i != slot_ && until[i].until > now && until[i].device == device_;
  }
  until[slot_] = {now + world_.costs().of(call), device_};
  return call;
}

cost::Call Caller::begin_call(Param param, std::uint32_t device) {
  const bool switches = switches_to(device);
  cost::Call call = begin_call(param);
  call.switches_device = switches;
  return call;
}

/// Threads that use one stream take turns in the order in which they came: with 2 to 4 of them each
/// launch takes a quarter longer than alone, one after the other, and no more with more of them
/// (hw/laboratory/causes/threads_and_streams.py on an H200).
cost::Call Caller::begin_call(Param param, const StreamQueue& queue) {
  cost::Call call = begin_call(param, queue.declared().device);
  if (capture_ != nullptr || !has_other_threads()) return call;
  stand_behind(queue.calls_until());
  if (behind_ > Duration{0}) call.others = 1;
  return call;
}

/// One thread after the other, none slower than alone (hw/laboratory/causes/allocating_threads.py
/// on an H200).
cost::Call Caller::begin_call_of_pool(Param param, std::uint32_t device) {
  cost::Call call = begin_call(param);
  if (capture_ != nullptr || !has_other_threads()) return call;
  stand_behind(process_.pool_calls_until[device]);
  if (behind_ > Duration{0}) call.others = 0;
  return call;
}

bool Caller::switches_to(std::uint32_t device) { return std::exchange(device_, device) != device; }

StreamQueue& Caller::stream_at(const StreamRef& ref, Variables variables) {
  const StreamId id = ref.resolve(variables);
  if (program_.streams[id.value].kind == StreamKind::PerThreadDefault) {
    return world_.per_thread_stream(process_, lane_, id);
  }
  return *process_.streams[id.value];
}

const Buffer& Caller::buffer(const BufferRef& ref) const {
  return program_.buffers[ref.resolve(variables_).value];
}

/// Everybody whose connection is not complete waits for the others on the host.
void Caller::wait_for_connection(Connection* connection) {
  if (connection == nullptr) return;  // made before
  connections_.push_back(connection);
  if (connection->made()) return;
  ++pending_wakes_;
  connection->waiters.push_back(this);
}

Caller::Passes Caller::go_through(std::uint32_t device, std::span<const UsedMemory> memory) {
  Level2 alone{0};
  Level2* level2 = &process_.level2[device];
  if (capture_ != nullptr) {  // it runs later, and again and again
    level2 = &alone;
    alone.use(memory);
  }
  const LastUses last = level2->use(memory);
  Passes passes;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    passes.push_back({memory[i].bytes, last[i].distance, last[i].only_read, last[i].wrote});
  }
  return passes;
}

}  // namespace foretrace::sim
