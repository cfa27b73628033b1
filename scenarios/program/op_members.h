// Every operation's members by name, in one order: the program's hash and its JSON are made of
// them, so that a member cannot be in one and not in the other. A new operation does not compile
// until it stands here.
#pragma once

#include "scenarios/program/ops.h"

namespace foretrace {

/// Calls for each member, in a fixed order, bodies of blocks excepted:
/// - `out.value(name, member)`, of the member's own type;
/// - `out.flag(name, bool)` where false is what the language leaves out;
/// - `out.number(name, expr)` where one is what it leaves out.
template <class Out>
void for_each_member(const OpKind& kind, Out&& out) {
  const auto stream = [&](const auto& o) { out.value("stream", o.stream); };
  const auto comm_and_stream = [&](const auto& o) {
    out.value("comm", o.comm);
    out.value("stream", o.stream);
  };
  const auto graph_and_stream = [&](const auto& o) {
    out.value("graph", o.graph);
    out.value("stream", o.stream);
  };
  const auto source_and_target = [&](const auto& o) {
    out.value("src", o.src);
    out.value("dst", o.dst);
    out.value("src_offset", o.src_offset);
    out.value("dst_offset", o.dst_offset);
    out.value("size", o.size);
  };
  const auto filled = [&](const auto& o) {
    out.value("dst", o.dst);
    out.value("size", o.size);
  };
  const auto transfer = [&](const auto& o) {
    comm_and_stream(o);
    out.value("buffer", o.buffer);
    out.value("size", o.size);
    out.value("type", o.type);
    out.value("peer", o.peer);
  };
  std::visit(Overloaded{
                 [&](const HostCompute& o) { out.value("duration", o.duration); },
                 [&](const HostFill& o) { filled(o); },
                 [&](const HostBarrier& o) { out.value("barrier", o.barrier); },
                 [&](const HostSignal& o) { out.value("signal", o.signal); },
                 [&](const HostWait& o) { out.value("signal", o.signal); },
                 [&](const HostParallel& o) {
                   out.value("flops", o.flops);
                   out.value("bytes", o.bytes);
                   out.value("threads", o.threads);
                 },
                 [&](const ReadFile& o) { filled(o); },
                 [&](const FrameworkCall& o) {
                   out.value("work", o.work);
                   out.value("count", o.count);
                   if (o.queries != 0) out.value("queries", o.queries);
                   if (o.loop_us != 0) out.value("loop_us", o.loop_us);
                 },
                 [&](const Spin& o) {
                   stream(o);
                   out.value("duration", o.duration);
                   out.value("blocks", o.blocks);
                   if (o.of != 0) out.number("of", Expr{o.of});
                 },
                 [&](const Gemm& o) {
                   stream(o);
                   out.value("m", o.m);
                   out.value("n", o.n);
                   out.value("k", o.k);
                   out.value("type", o.type);
                   out.value("a", o.a);
                   out.value("b", o.b);
                   out.value("c", o.c);
                   out.flag("transpose_a", o.transpose_a);
                   out.flag("transpose_b", o.transpose_b);
                   out.number("batch", o.batch);
                   out.flag("adds_to_c", o.adds_to_c);
                   if (o.result) out.value("result", *o.result);
                   out.flag("tf32", o.tf32);
                   if (o.scales != Scales::Tensor) out.value("scales", o.scales);
                 },
                 [&](const Elementwise& o) {
                   stream(o);
                   out.value("sources", o.sources);
                   filled(o);
                   out.value("type", o.type);
                 },
                 [&](const Reduction& o) {
                   stream(o);
                   out.value("src", o.src);
                   filled(o);
                   out.value("type", o.type);
                   out.value("op", o.op);
                 },
                 [&](const LibraryKernel& o) {
                   stream(o);
                   out.value("kernel", o.kernel);
                   out.value("flops", o.flops);
                   out.value("bytes", o.bytes);
                   out.value("width", o.width);
                   if (o.kernel == KernelKind::Captured) {
                     out.value("name", o.captured.name);
                     out.value("grid", o.captured.grid);
                     out.value("block", o.captured.block);
                     out.value("inner", o.captured.inner);
                     out.value("joined", o.captured.joined);
                     out.value("channels", o.captured.channels);
                   }
                 },
                 [&](const HostFunc& o) {
                   stream(o);
                   out.value("duration", o.duration);
                   out.value("wait", o.wait);
                   out.value("signal", o.signal);
                 },
                 [&](const Fault& o) { stream(o); },
                 [&](const MemcpyAsync& o) {
                   stream(o);
                   source_and_target(o);
                 },
                 [&](const Memcpy& o) { source_and_target(o); },
                 [&](const MemsetAsync& o) {
                   stream(o);
                   filled(o);
                 },
                 [&](const Memset& o) { filled(o); },
                 [&](const EnablePeerAccess& o) {
                   out.value("device", o.device);
                   out.value("peer", o.peer);
                 },
                 [&](const EventRecord& o) {
                   out.value("event", o.event);
                   stream(o);
                 },
                 [&](const StreamWaitEvent& o) {
                   stream(o);
                   out.value("event", o.event);
                 },
                 [&](const EventSynchronize& o) { out.value("event", o.event); },
                 [&](const EventQuery& o) { out.value("event", o.event); },
                 [&](const EventElapsedTime& o) {
                   out.value("start", o.start);
                   out.value("end", o.end);
                 },
                 [&](const EventWaitFor& o) {
                   out.value("event", o.event);
                   out.value("timeout", o.timeout);
                   out.value("poll", o.poll);
                 },
                 [&](const StreamSynchronize& o) { stream(o); },
                 [&](const StreamQuery& o) { stream(o); },
                 [&](const DeviceSynchronize& o) { out.value("device", o.device); },
                 [&](const Malloc& o) { out.value("buffer", o.buffer); },
                 [&](const Free& o) { out.value("buffer", o.buffer); },
                 [&](const MallocAsync& o) {
                   out.value("buffer", o.buffer);
                   stream(o);
                 },
                 [&](const FreeAsync& o) {
                   out.value("buffer", o.buffer);
                   stream(o);
                 },
                 [&](const HostAlloc& o) { out.value("buffer", o.buffer); },
                 [&](const HostFree& o) { out.value("buffer", o.buffer); },
                 [&](const HostRegister& o) { out.value("buffer", o.buffer); },
                 [&](const HostUnregister& o) { out.value("buffer", o.buffer); },
                 [&](const NcclCommInit& o) {
                   out.value("comm", o.comm);
                   out.flag("if_needed", o.if_needed);
                 },
                 [&](const NcclCommDestroy& o) { out.value("comm", o.comm); },
                 [&](const NcclCommRegister& o) {
                   out.value("comm", o.comm);
                   out.value("buffer", o.buffer);
                 },
                 [&](const NcclCommDeregister& o) {
                   out.value("comm", o.comm);
                   out.value("buffer", o.buffer);
                 },
                 [&](const NcclCollective& o) {
                   comm_and_stream(o);
                   out.value("send", o.send);
                   out.value("recv", o.recv);
                   out.value("size", o.size);
                   out.value("type", o.type);
                   out.value("op", o.op);
                   out.value("root", o.root);
                 },
                 [&](const NcclSend& o) { transfer(o); },
                 [&](const NcclRecv& o) { transfer(o); },
                 [&](const GraphLaunch& o) { graph_and_stream(o); },
                 [&](const Repeat& o) { out.value("times", o.times); },
                 [&](const Region& o) { out.value("per", o.per); },
                 [](const NcclGroup&) {},
                 [&](const GraphCapture& o) { graph_and_stream(o); },
             },
             kind);
}

}  // namespace foretrace
