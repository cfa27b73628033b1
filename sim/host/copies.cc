// Copies and memsets: which engine and route they take, and how far the host takes part.
#include <fmt/format.h>

#include <algorithm>

#include "sim/host/thread.h"

namespace foretrace::sim {

bool HostThread::is_pinned(const BufferRef& ref) const {
  return buffer(ref).memory == MemoryKind::Pinned || process_.pinned[ref.resolve(variables_).value];
}

void HostThread::run(const MemcpyAsync& op) {
  copy(stream(op.stream), op.src, op.dst, op.size.eval(variables_), false);
}

void HostThread::run(const Memcpy& op) {
  const Buffer& from = buffer(op.src);
  const Buffer& to = buffer(op.dst);
  const std::uint32_t device = to.memory == MemoryKind::Device ? to.device : from.device;
  copy(*process_.streams[device], op.src, op.dst, op.size.eval(variables_), true);
}

void HostThread::copy(StreamQueue& queue, const BufferRef& src, const BufferRef& dst, Bytes size,
                      bool synchronous) {
  const Buffer& from = buffer(src);
  const Buffer& to = buffer(dst);
  const bool from_device = from.memory == MemoryKind::Device;
  const bool to_device = to.memory == MemoryKind::Device;
  if (!from_device && !to_device) {
    // On an H200 104.7 ms behind 1500 kernels of the legacy stream, 49.3 ms behind 500; blocking
    // streams alone are not waited for (26_logger_on_the_default_stream of written-11).
    StreamQueue& legacy = *process_.streams[device_];
    const bool waits = synchronous && legacy.pending() > 0 && waits_first(legacy);
    if (!waits) copy_on_host(src, dst, size);
    return;
  }
  if (held_up(queue)) return;
  const std::uint32_t device = from_device ? from.device : to.device;
  const UsedMemory of_device = from_device ? used(src, size) : used(dst, size).write();
  const bool beside_host = !(from_device && to_device);
  if (from_device && to_device && from.device == to.device) {
    // A kernel; even cudaMemcpy does not wait for it.
    cost::Call queues = begin_call(Param::HostMemcpyDevice, queue);
    queues.kernels = cost::device_copy_kernels(size);
    const Priced call = price(queues);
    const UsedMemory memory[] = {used(src, size), used(dst, size).write()};
    push_kernel(queue, call.time, from.device, memory,
                [](Reading& read, std::span<const cost::Pass> passes) {
                  return cost::device_copy_cost(read, passes[0], passes[1]);
                });
    take(call);
  } else if (from_device != to_device && !is_pinned(from_device ? dst : src)) {
    pageable_copy(queue, from_device ? dst : src, device, size, to_device, synchronous);
  } else {
    pinned_copy(queue, src, dst, size, synchronous);
  }
  if (!beside_host || retry_) return;
  go_through(device, {&of_device, 1});
  goes_through_again(device, {&of_device, 1}, nullptr);
}

/// The CPU copies, and holds the context meanwhile, as who allocates does: ten training steps
/// beside 36 copies into new pages took as long as these (04_checkpoint_in_background of
/// written-11).
void HostThread::copy_on_host(const BufferRef& src, const BufferRef& dst, Bytes size) {
  if (context_is_held(device_)) return;
  cost::Copy copy{cost::Route::HostToHost, size};
  copy.from_cache = reads(src.resolve(variables_), size, true) != FoundIn::Memory;
  copy.fresh = touches(dst, size, written_from());
  wrote(dst.resolve(variables_), size);
  cost::Call call = begin_call(cost::copy_call(machine_, copy.route));
  hold_context(call, device_);
  const Priced priced =
      price([&](Reading& read) { return cost::copy_call_time(read, call, copy); }, call.is_first);
  process_.contexts[device_].until = engine_.now() + priced.time;
  take(priced);
}

/// Between a GPU and pinned memory, or between two GPUs: the host only queues it.
void HostThread::pinned_copy(StreamQueue& queue, const BufferRef& src, const BufferRef& dst,
                             Bytes size, bool synchronous) {
  const Buffer& from = buffer(src);
  const Buffer& to = buffer(dst);
  cost::Copy copy{cost::Route::PinnedToDevice, size};
  if (from.memory == MemoryKind::Device) copy.route = cost::Route::DeviceToPinned;
  if (from.memory == MemoryKind::Device && to.memory == MemoryKind::Device) {
    const bool direct =
        process_.peer_access[std::size_t{from.device} * program_.devices + to.device] ||
        process_.peer_access[std::size_t{to.device} * program_.devices + from.device];
    copy.route = direct ? cost::Route::PeerDirect : cost::Route::PeerStaged;
  }
  const Priced call = price(begin_call(cost::copy_call(machine_, copy.route), queue));
  CopyWork work = copy_work(copy, from.device, to.device);
  // The GPU that has the data copies it: a stream of another one hands the copy over, and what
  // follows there waits for the way back (hw/laboratory/causes/peers_of_threads.py, two H200s).
  if (copy.route == cost::Route::PeerDirect && queue.declared().device != from.device) {
    Reading read{machine_};
    work.hand_over = cost::hand_over_to_peer(read) / 2;
  }
  push(queue, call.time, cost::Entry::Copy, std::move(work));
  // What a GPU writes the host finds in memory: 48 MiB of staging at 7.2 GB/s, not 13
  // (18_async_checkpoint of blind round written-4).
  if (copy.route == cost::Route::DeviceToPinned) {
    process_.host_reads[dst.resolve(variables_).value] = {.at = process_.host_bytes_touched};
  }
  if (synchronous) {
    wait_for_stream(queue);
    block(call, cost::Wait::Device,
          fmt::format("the copy on stream {} to end", queue.declared().name));
  } else {
    take(call);
  }
}

/// What the copy engine does; `from` and `to` are devices where the route has them.
CopyWork HostThread::copy_work(const cost::Copy& copy, std::uint32_t from, std::uint32_t to) {
  Reading read{machine_};
  const cost::EngineCost engine = cost::engine_cost(read, copy);
  CopyWork work;
  work.size = engine.bytes;
  work.latency = engine.latency;
  work.in_stream = cost::travels_with_the_call(read, copy);
  work.detail = recorder_.banded(*current_.op, SpanOf::Device, {},
                                 [&](Reading& again) { return cost::copy_time(again, copy); });
  switch (copy.route) {
    case cost::Route::PinnedToDevice:
    case cost::Route::PageableToDevice:
      work.engine = CopyEngineKind::HostToDevice;
      work.path = world_.host_to_device(process_, to, engine.rate);
      break;
    case cost::Route::DeviceToPinned:
    case cost::Route::DeviceToPageable:
      work.in_pieces = cost::is_fetched_in_pieces(read, copy);
      work.engine = CopyEngineKind::DeviceToHost;
      work.path = world_.device_to_host(process_, from, engine.rate);
      break;
    case cost::Route::PeerDirect:
    case cost::Route::PeerStaged: {
      const bool direct = copy.route == cost::Route::PeerDirect;
      work.engine = CopyEngineKind::PeerToPeer;
      work.path = world_.peer(process_, from, to, direct);
      work.chunks = world_.chunk_route(process_, from, to, direct);
      break;
    }
    case cost::Route::HostToHost:
      break;
  }
  return work;
}

/// The same part of the buffer again is in the cache; another part is only where the passes before
/// have left all of the buffer there, and then it is not in the core's own. The first one behind a
/// cudaFreeHost takes as long as if the cache had none of it (pinned_for_a_transfer of blind rounds
/// 12 to 27, seven programs with spans on an H100).
FoundIn HostThread::reads(BufferId id, Bytes size, bool by_host_copy) {
  HostRead& last = process_.host_reads[id.value];
  const bool is_evicted = last.frees != process_.host_frees;
  const auto begin_of = [this](const auto* op) {
    return op == nullptr ? 0 : op->src_offset.eval(variables_).count;
  };
  const OpKind& kind = current_.op->kind;
  const std::uint64_t begin =
      begin_of(std::get_if<MemcpyAsync>(&kind)) + begin_of(std::get_if<Memcpy>(&kind));
  Reading read{machine_};
  const bool again = last.has(begin, size.count);
  const bool warm = last.from_last_pass && !is_evicted;
  const cost::RecentReads memory{{again || warm ? size.count : 0},
                                 warm ? cost::kReadsIntoCache : last.reads,
                                 process_.host_bytes_touched - last.at,
                                 by_host_copy};
  const bool cached = !is_evicted && cost::is_in_cache(read, memory, size);
  const bool in_core = cached && again && cost::share_in_core(read, size) > 0;
  const std::uint32_t before = last.from_last_pass ? cost::kReadsIntoCache - 1 : 0;
  const std::uint32_t reads = (last.overlaps(begin, size.count) ? last.reads : before) + 1;
  last = {begin, size.count, reads, process_.host_bytes_touched, warm, process_.host_frees};
  process_.host_bytes_touched += size.count;
  return in_core ? FoundIn::CoreCache : cached ? FoundIn::LastLevelCache : FoundIn::Memory;
}

std::uint64_t HostThread::written_from() const {
  const auto begin_of = [this](const auto* op) {
    return op == nullptr ? 0 : op->dst_offset.eval(variables_).count;
  };
  const OpKind& kind = current_.op->kind;
  return begin_of(std::get_if<MemcpyAsync>(&kind)) + begin_of(std::get_if<Memcpy>(&kind));
}

Bytes HostThread::touches(const BufferRef& ref, Bytes size, std::uint64_t begin) {
  if (buffer(ref).memory != MemoryKind::FreshPageable) return {};
  return process_.touched[ref.resolve(variables_).value].touch(begin, size);
}

void HostThread::wrote(BufferId id, Bytes size) {
  process_.host_reads[id.value] = {.at = process_.host_bytes_touched};
  process_.host_bytes_touched += size.count;
}

/// cudaMemcpy waits for its stream before the host touches the data.
bool HostThread::waits_first(StreamQueue& queue) {
  if (!queue.is_busy()) return false;
  if (queue.waits_for_peers()) push(queue, Duration{0}, cost::Entry::NoTime, MarkerWork{});
  wait_for_stream(queue);
  retry_ = true;
  block({}, cost::Wait::Device, fmt::format("stream {} before the copy", queue.declared().name));
  return true;
}

/// The driver moves the data through its own pinned memory, and the host is part of it.
void HostThread::pageable_copy(StreamQueue& queue, const BufferRef& host, std::uint32_t device,
                               Bytes size, bool to_device, bool synchronous) {
  if (synchronous && to_device && waits_first(queue)) return;
  if (to_device && capture_ == nullptr) {
    staged_upload(queue, host, device, size);
    return;
  }
  cost::Copy copy{to_device ? cost::Route::PageableToDevice : cost::Route::DeviceToPageable, size};
  const BufferId id = host.resolve(variables_);
  if (to_device) {
    copy.from_cache = reads(id, size) != FoundIn::Memory;
  } else {
    copy.fresh = touches(host, size, written_from());
    wrote(id, size);
  }
  const cost::Call made = begin_call(cost::copy_call(machine_, copy.route), queue);
  const Priced call =
      price([&](Reading& read) { return cost::copy_call_time(read, made, copy); }, made.is_first);
  push(queue, call.time, cost::Entry::Copy, copy_work(copy, device, device));
  Reading read{machine_};
  if (cost::travels_with_the_call(read, copy)) {
    take(call);
  } else {
    block_for_copy(queue, call);
  }
}

void HostThread::block_for_copy(StreamQueue& queue, Priced call) {
  wait_for_stream(queue);
  block(call, cost::Wait::Device,
        fmt::format("the pageable copy on stream {} to end", queue.declared().name));
}

/// A small upload travels in the command stream. A larger one the driver takes into its own memory,
/// piece by piece. On an idle stream each piece goes on at once, and the call, cudaMemcpy's too,
/// returns when the last one is staged; behind work all of it stays there, as far as there is room,
/// and the stream's next upload waits until it has gone. Meanwhile no other thread uploads to that
/// GPU: who waits looks again, and a thread that uploads on and on is faster then
/// (04_threads_upload_pageable of blind round written-9).
void HostThread::staged_upload(StreamQueue& queue, const BufferRef& host, std::uint32_t device,
                               Bytes size) {
  const bool behind_work = queue.is_busy() && !queue.only_flows();
  if (behind_work && queue.completed() < queue.last_staged()) {
    wait_for_entry(queue, queue.last_staged(), "the end of a staged upload");
    return;
  }
  Reading read{machine_};
  cost::Copy copy{cost::Route::PageableToDevice, size};
  TimePoint& until = process_.uploads_until[device];
  const bool is_alone = !behind_work && !cost::travels_with_the_call(read, copy);
  if (is_alone && until > engine_.now()) {
    look_again(until);
    return;
  }
  const FoundIn found = reads(host.resolve(variables_), size);
  copy.from_cache = found != FoundIn::Memory;
  copy.from_core = found == FoundIn::CoreCache;
  const bool travels = cost::travels_with_the_call(read, copy);
  const Bytes room = cost::staged_during_the_call(read, copy);
  if (!travels) copy.staged = behind_work ? room : size;
  const cost::Call made = begin_call(cost::copy_call(machine_, copy.route), queue);
  const Priced call = price(
      [&](Reading& reading) { return cost::copy_call_time(reading, made, copy); }, made.is_first);
  Duration first = call.time;
  if (!travels && !behind_work) {
    copy.staged = cost::last_piece(size);
    first -= cost::stage_time(read, copy, size - copy.staged);
  }
  push(queue, first, cost::Entry::Copy, copy_work(copy, device, device));
  if (is_alone) until = engine_.now() + call.time;
  if (behind_work && room == size) queue.staged();
  if (!behind_work && !travels) queue.flows();
  if (behind_work && !travels && room != size) {
    block_for_copy(queue, call);
  } else {
    take(call);
  }
}

cost::MemsetIn HostThread::memset_in(const StreamQueue& queue, double bytes) {
  if (capture_ == nullptr) return cost::MemsetIn::Stream;
  if (!cost::is_small_memset(bytes)) return cost::MemsetIn::Graph;
  const auto& entries = capture_->entries();
  const auto is_before = [&](const GraphExec::Entry& entry) {
    return entry.stream == &queue && GraphExec::is_node(entry);
  };
  const auto before = std::find_if(entries.rbegin(), entries.rend(), is_before);
  const auto place = static_cast<std::size_t>(entries.rend() - before);  // 1: the first entry's
  const bool behind = small_memsets_.contains(place);
  small_memsets_.insert(entries.size() + 1);
  return behind ? cost::MemsetIn::GraphBehindSmall : cost::MemsetIn::Graph;
}

/// cudaMemset of host memory waits for the kernel that does it.
void HostThread::memset(StreamQueue& queue, const BufferRef& dst, Bytes size, bool synchronous) {
  if (held_up(queue)) return;
  const bool on_host = buffer(dst).memory != MemoryKind::Device;
  const cost::Call made = begin_call(Param::HostMemset, queue);
  const Priced call = price(
      [&](Reading& read) {
        return on_host ? cost::call_time(read, made) : cost::memset_time(read, made, size);
      },
      made.is_first);
  if (on_host) {
    push(queue, call.time, cost::Entry::Kernel,
         kernel_work([&](Reading& read) { return cost::host_memset_cost(read, size); }));
  } else {
    const UsedMemory memory = used(dst, size).write();
    const cost::MemsetIn place = memset_in(queue, memory.bytes);
    push_kernel(queue, call.time, buffer(dst).device, {&memory, 1},
                [place](Reading& read, std::span<const cost::Pass> passes) {
                  return cost::memset_cost(read, passes.front(), place);
                });
  }
  if (on_host && synchronous) wait_for_stream(queue);
  block(call, cost::Wait::Device, "the memset of host memory to end");
}

void HostThread::run(const MemsetAsync& op) {
  memset(stream(op.stream), op.dst, op.size.eval(variables_), false);
}

void HostThread::run(const Memset& op) {
  memset(*process_.streams[buffer(op.dst).device], op.dst, op.size.eval(variables_), true);
}

void HostThread::run(const EnablePeerAccess& op) {
  const auto device = static_cast<std::size_t>(op.device.eval(variables_));
  const auto peer = static_cast<std::size_t>(op.peer.eval(variables_));
  const std::size_t pair = device * program_.devices + peer;
  const bool stays = program_.warmup > 0 && !program_.communicators.empty();
  const bool is_done = process_.peer_enabled[pair] || stays;
  process_.peer_access[pair] = process_.peer_enabled[pair] = true;
  const bool switches = is_done && switches_to(static_cast<std::uint32_t>(device));
  take(price([&](Reading& read) { return cost::enable_peer_time(read, is_done, switches); }));
}

}  // namespace foretrace::sim
