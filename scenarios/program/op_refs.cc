#include "scenarios/program/op_refs.h"

namespace foretrace {

std::vector<const EventRef*> events_waited_for(const OpKind& kind) {
  if (const auto* op = std::get_if<StreamWaitEvent>(&kind)) return {&op->event};
  if (const auto* op = std::get_if<EventSynchronize>(&kind)) return {&op->event};
  if (const auto* op = std::get_if<EventQuery>(&kind)) return {&op->event};
  if (const auto* op = std::get_if<EventWaitFor>(&kind)) return {&op->event};
  if (const auto* op = std::get_if<EventElapsedTime>(&kind)) return {&op->start, &op->end};
  return {};
}

const StreamRef* kernel_stream(const OpKind& kind) {
  if (const auto* op = std::get_if<Spin>(&kind)) return &op->stream;
  if (const auto* op = std::get_if<Gemm>(&kind)) return &op->stream;
  if (const auto* op = std::get_if<Elementwise>(&kind)) return &op->stream;
  if (const auto* op = std::get_if<Reduction>(&kind)) return &op->stream;
  if (const auto* op = std::get_if<Fault>(&kind)) return &op->stream;
  if (const auto* op = std::get_if<NcclCollective>(&kind)) return &op->stream;
  if (const auto* op = std::get_if<NcclSend>(&kind)) return &op->stream;
  if (const auto* op = std::get_if<NcclRecv>(&kind)) return &op->stream;
  return nullptr;
}

std::vector<const BufferRef*> kernel_buffers(const OpKind& kind) {
  if (const auto* op = std::get_if<Gemm>(&kind)) return {&op->a, &op->b, &op->c};
  if (const auto* op = std::get_if<Elementwise>(&kind)) {
    std::vector<const BufferRef*> buffers{&op->dst};
    for (const BufferRef& source : op->sources) buffers.push_back(&source);
    return buffers;
  }
  if (const auto* op = std::get_if<Reduction>(&kind)) return {&op->src, &op->dst};
  if (const auto* op = std::get_if<NcclCollective>(&kind)) return {&op->send, &op->recv};
  if (const auto* op = std::get_if<NcclSend>(&kind)) return {&op->buffer};
  if (const auto* op = std::get_if<NcclRecv>(&kind)) return {&op->buffer};
  return {};
}

std::vector<BufferAccess> buffer_accesses(const OpKind& kind) {
  if (const auto* op = std::get_if<HostFill>(&kind)) return {{&op->dst, true}};
  if (const auto* op = std::get_if<Gemm>(&kind)) {
    return {{&op->a, false}, {&op->b, false}, {&op->c, true}};
  }
  if (const auto* op = std::get_if<Elementwise>(&kind)) {
    std::vector<BufferAccess> accesses;
    for (const BufferRef& source : op->sources) accesses.push_back({&source, false});
    accesses.push_back({&op->dst, true});
    return accesses;
  }
  if (const auto* op = std::get_if<Reduction>(&kind)) return {{&op->src, false}, {&op->dst, true}};
  if (const auto* op = std::get_if<MemcpyAsync>(&kind)) {
    return {{&op->src, false}, {&op->dst, true}};
  }
  if (const auto* op = std::get_if<Memcpy>(&kind)) return {{&op->src, false}, {&op->dst, true}};
  if (const auto* op = std::get_if<MemsetAsync>(&kind)) return {{&op->dst, true}};
  if (const auto* op = std::get_if<Memset>(&kind)) return {{&op->dst, true}};
  if (const auto* op = std::get_if<NcclCollective>(&kind)) {
    return {{&op->send, false}, {&op->recv, true}};
  }
  if (const auto* op = std::get_if<NcclSend>(&kind)) return {{&op->buffer, false}};
  if (const auto* op = std::get_if<NcclRecv>(&kind)) return {{&op->buffer, true}};
  return {};
}

const CommRef* nccl_comm(const OpKind& kind) {
  if (const auto* op = std::get_if<NcclCollective>(&kind)) return &op->comm;
  if (const auto* op = std::get_if<NcclSend>(&kind)) return &op->comm;
  if (const auto* op = std::get_if<NcclRecv>(&kind)) return &op->comm;
  if (const auto* op = std::get_if<NcclCommInit>(&kind)) return &op->comm;
  if (const auto* op = std::get_if<NcclCommDestroy>(&kind)) return &op->comm;
  return nullptr;
}

}  // namespace foretrace
