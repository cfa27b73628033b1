// Copies and memsets: which engine and route they take, and how far the host takes part.
#include <fmt/format.h>

#include <algorithm>

#include "models/cost/kernel_cost.h"
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
  if (!from_device && !to_device) {  // the driver's own memcpy
    const bool cached = read_from_cache(src.resolve(variables_), size);
    touched(dst.resolve(variables_), size, false);
    take(call_cost(Param::HostMemcpyAsync) +
         at_rate(size, machine_.rate(cached && machine_.has(Param::HostCopyCached)
                                         ? Param::HostCopyCached
                                         : Param::HostCopyBandwidth)));
    return;
  }
  if (queue_full(queue)) return;
  if (from_device != to_device && !is_pinned(from_device ? dst : src)) {
    pageable_copy(queue, from_device ? dst : src, from_device ? from.device : to.device, size,
                  to_device, synchronous);
    return;
  }
  Duration call = device_switch(queue.declared().device);
  if (from_device && to_device && from.device == to.device) {
    call += call_cost(Param::HostMemcpyDevice);  // a kernel; even cudaMemcpy does not wait for it
    push(queue, call, machine_.time(Param::LaunchLatency),
         KernelWork{device_copy_cost(machine_, size)});
    take(call);
    return;
  }
  CopyWork work;
  work.size = size;
  if (from_device && to_device) {
    const bool direct =
        process_.peer_access[std::size_t{from.device} * program_.devices + to.device] ||
        process_.peer_access[std::size_t{to.device} * program_.devices + from.device];
    call += call_cost(Param::HostMemcpyPeer);
    work.engine = CopyEngineKind::PeerToPeer;
    work.path = world_.peer(process_, from.device, to.device, direct);
    work.chunks = world_.chunk_route(process_, from.device, to.device, direct);
    work.latency = machine_.time(direct ? Param::P2pLatency : Param::P2pStagedLatency);
  } else if (to_device) {
    call += call_cost(Param::HostMemcpyAsync);
    work.engine = CopyEngineKind::HostToDevice;
    work.path = world_.host_to_device(process_, to.device, Param::H2dBandwidth);
    work.latency = machine_.time(Param::H2dLatency);
  } else {
    call += call_cost(Param::HostMemcpyAsync);
    work.engine = CopyEngineKind::DeviceToHost;
    work.path = world_.device_to_host(process_, from.device, Param::D2hBandwidth);
    work.latency = machine_.time(Param::D2hLatency);
  }
  push(queue, call, machine_.time(Param::CopyLaunchLatency), work);
  if (synchronous) {
    wait_for_stream(queue);
    block(call, machine_.time(Param::HostWake),
          fmt::format("the copy on stream {} to end", queue.declared().name));
  } else {
    take(call);
  }
}

/// From its third reading on, a copy finds its source in the last-level cache, unless the host has
/// touched more than fits there in between. Memory that the host has just written is as slow as
/// memory. Measured on the H200 machines: scenarios/calibration/copies.yaml.
bool HostThread::read_from_cache(BufferId id, Bytes size) {
  const HostRead& last = process_.host_reads[id.value];
  const std::uint64_t since = process_.host_bytes_touched - last.at;
  const bool cached =
      last.reads >= 2 && last.size >= size.count && since <= machine_.size(Param::HostCache).count;
  touched(id, size, true);
  return cached;
}

void HostThread::touched(BufferId id, Bytes size, bool by_reading) {
  HostRead& last = process_.host_reads[id.value];
  last = {by_reading ? size.count : 0, by_reading ? last.reads + 1 : 0,
          process_.host_bytes_touched};
  process_.host_bytes_touched += size.count;
}

/// The driver moves the data through its own pinned memory, and the host is part of it: a small
/// copy to the device travels in the command stream, everything else returns when it has ended.
void HostThread::pageable_copy(StreamQueue& queue, const BufferRef& host, std::uint32_t device,
                               Bytes size, bool to_device, bool synchronous) {
  // cudaMemcpy from pageable memory waits for its stream before it touches the data.
  const bool stream_is_busy = queue.pending() > 0 || queue.waits_for_peers();
  if (synchronous && to_device && stream_is_busy) {
    if (queue.waits_for_peers()) push(queue, Duration{0}, Duration{0}, MarkerWork{});
    wait_for_stream(queue);
    retry_ = true;
    block(Duration{0}, machine_.time(Param::HostWake),
          fmt::format("stream {} before the copy", queue.declared().name));
    return;
  }
  const bool fresh = buffer(host).memory == MemoryKind::FreshPageable;
  const Duration base = call_cost(to_device ? Param::PageableH2dBase : Param::PageableD2hBase) +
                        device_switch(queue.declared().device);
  CopyWork work;
  work.size = size;
  if (to_device) {
    work.engine = CopyEngineKind::HostToDevice;
    const bool cached = read_from_cache(host.resolve(variables_), size);
    work.path = world_.host_to_device(
        process_, device, cached ? Param::PageableH2dCached : Param::PageableH2dBandwidth);
    work.latency = machine_.time(Param::H2dLatency);
  } else {
    touched(host.resolve(variables_), size, false);
    work.engine = CopyEngineKind::DeviceToHost;
    work.path = world_.device_to_host(
        process_, device, fresh ? Param::FreshD2hBandwidth : Param::PageableD2hBandwidth);
    work.latency = machine_.time(Param::D2hLatency);
  }
  if (to_device && size <= machine_.size(Param::SmallPageableLimit)) {
    const Duration call = base + at_rate(size, machine_.rate(Param::SmallPageableBandwidth));
    push(queue, call, machine_.time(Param::CopyLaunchLatency), work);
    take(call);
    return;
  }
  if (!to_device && !fresh) {  // the first pieces do not overlap with anything
    const Bytes first = std::min(size, machine_.size(Param::PageableD2hFirst));
    work.size = size - first;
    work.latency += at_rate(first, machine_.rate(Param::PageableD2hFirstBandwidth));
  }
  push(queue, base, machine_.time(Param::CopyLaunchLatency), work);
  wait_for_stream(queue);
  block(base, machine_.time(Param::HostWake),
        fmt::format("the pageable copy on stream {} to end", queue.declared().name));
}

/// Host memory is set by a kernel too, across PCIe, and cudaMemset waits for that.
void HostThread::memset(StreamQueue& queue, const BufferRef& dst, Bytes size, bool synchronous) {
  if (queue_full(queue)) return;
  const Duration call = call_cost(Param::HostMemset) + device_switch(queue.declared().device);
  const bool on_host = buffer(dst).memory != MemoryKind::Device;
  KernelCost cost = memset_cost(machine_, size);
  if (on_host) {
    cost = {machine_.time(Param::KernelBase) + at_rate(size, machine_.rate(Param::D2hBandwidth)), 1,
            0};
  }
  push(queue, call, machine_.time(Param::LaunchLatency), KernelWork{cost});
  if (on_host && synchronous) wait_for_stream(queue);
  block(call, machine_.time(Param::HostWake), "the memset of host memory to end");
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
  process_.peer_access[device * program_.devices + peer] = true;
  take(program_.warmup > 0 ? device_switch(static_cast<std::uint32_t>(device))
                           : machine_.time(Param::HostEnablePeer));
}

}  // namespace foretrace::sim
