#include "scenarios/program/ops.h"

#include <algorithm>
#include <array>
#include <limits>

namespace foretrace {
namespace {

std::string collective_name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::AllReduce:
      return "nccl_all_reduce";
    case CollectiveKind::Broadcast:
      return "nccl_broadcast";
    case CollectiveKind::Reduce:
      return "nccl_reduce";
    case CollectiveKind::AllGather:
      return "nccl_all_gather";
    case CollectiveKind::ReduceScatter:
      return "nccl_reduce_scatter";
    case CollectiveKind::AllToAll:
      return "nccl_all_to_all";
    case CollectiveKind::Gather:
      return "nccl_gather";
    case CollectiveKind::Scatter:
      return "nccl_scatter";
  }
  return {};
}

constexpr std::array<const char*, kKernelKinds> kKernelKindNames{
    "attention_forward",
    "attention_backward",
    "pointwise",
    "narrow",
    "widen",
    "mixed",
    "strided",
    "concatenate",
    "layer_norm",
    "layer_norm_backward",
    "layer_norm_weights",
    "rms_norm",
    "rms_norm_backward",
    "rms_norm_weights",
    "column_sum",
    "softmax",
    "softmax_backward",
    "gather",
    "gather_backward",
    "optimizer",
    "optimizer_half",
    "shard_copy",
    "captured",
};

constexpr std::array<const char*, kFrameworkWorks> kFrameworkWorkNames{
    "forward",
    "linear",
    "attention",
    "autocast",
    "backward",
    "product",
    "attention_backward",
    "accumulate",
    "reducer",
    "collective",
    "shard",
    "dtensor",
    "stage",
    "recompute",
    "optimizer",
    "parameter",
    "step",
    "captured",
    "captured_product",
    "captured_library",
};

}  // namespace

OpKind::OpKind() = default;
OpKind::OpKind(const OpKind& other) = default;
OpKind::OpKind(OpKind&& other) noexcept = default;
OpKind& OpKind::operator=(const OpKind& other) = default;
OpKind& OpKind::operator=(OpKind&& other) noexcept = default;
OpKind::~OpKind() = default;

const char* kernel_kind_name(KernelKind kind) {
  return kKernelKindNames[static_cast<std::size_t>(kind)];
}

const char* framework_work_name(FrameworkWork work) {
  return kFrameworkWorkNames[static_cast<std::size_t>(work)];
}

Bytes size_of(DataType type) {
  switch (type) {
    case DataType::Int8:
    case DataType::Float8E4M3:
    case DataType::Float8E5M2:
    case DataType::Float4E2M1:  // two of them: operand_bytes()
      return {1};
    case DataType::Float16:
    case DataType::BFloat16:
      return {2};
    case DataType::Float32:
    case DataType::Int32:
      return {4};
    case DataType::Float64:
    case DataType::Int64:
      return {8};
  }
  return {};
}

const Block* block_of(const OpKind& kind) {
  if (const auto* repeat = std::get_if<Repeat>(&kind)) return &repeat->ops;
  if (const auto* region = std::get_if<Region>(&kind)) return &region->ops;
  if (const auto* group = std::get_if<NcclGroup>(&kind)) return &group->ops;
  if (const auto* capture = std::get_if<GraphCapture>(&kind)) return &capture->ops;
  return nullptr;
}

bool is_timed(const Op& op) {
  return std::holds_alternative<EventElapsedTime>(op.kind) && !op.label.empty();
}

std::string kind_name(const OpKind& kind) {
  return std::visit(
      Overloaded{
          [](const HostCompute&) -> std::string { return "host_compute"; },
          [](const HostFill&) -> std::string { return "host_fill"; },
          [](const HostBarrier&) -> std::string { return "host_barrier"; },
          [](const HostSignal&) -> std::string { return "host_signal"; },
          [](const HostWait&) -> std::string { return "host_wait"; },
          [](const HostParallel&) -> std::string { return "host_parallel"; },
          [](const ReadFile&) -> std::string { return "read_file"; },
          [](const FrameworkCall&) -> std::string { return "framework_call"; },
          [](const Spin&) -> std::string { return "spin"; },
          [](const Gemm&) -> std::string { return "gemm"; },
          [](const Elementwise&) -> std::string { return "elementwise"; },
          [](const Reduction&) -> std::string { return "reduction"; },
          [](const LibraryKernel&) -> std::string { return "library_kernel"; },
          [](const HostFunc&) -> std::string { return "host_func"; },
          [](const Fault&) -> std::string { return "fault"; },
          [](const MemcpyAsync&) -> std::string { return "memcpy_async"; },
          [](const Memcpy&) -> std::string { return "memcpy"; },
          [](const MemsetAsync&) -> std::string { return "memset_async"; },
          [](const Memset&) -> std::string { return "memset"; },
          [](const EnablePeerAccess&) -> std::string { return "enable_peer_access"; },
          [](const EventRecord&) -> std::string { return "event_record"; },
          [](const StreamWaitEvent&) -> std::string { return "stream_wait_event"; },
          [](const EventSynchronize&) -> std::string { return "event_synchronize"; },
          [](const EventQuery&) -> std::string { return "event_query"; },
          [](const EventElapsedTime&) -> std::string { return "event_elapsed_time"; },
          [](const EventWaitFor&) -> std::string { return "event_wait_for"; },
          [](const StreamSynchronize&) -> std::string { return "stream_synchronize"; },
          [](const StreamQuery&) -> std::string { return "stream_query"; },
          [](const DeviceSynchronize&) -> std::string { return "device_synchronize"; },
          [](const Malloc&) -> std::string { return "malloc"; },
          [](const Free&) -> std::string { return "free"; },
          [](const MallocAsync&) -> std::string { return "malloc_async"; },
          [](const FreeAsync&) -> std::string { return "free_async"; },
          [](const HostAlloc&) -> std::string { return "host_alloc"; },
          [](const HostFree&) -> std::string { return "host_free"; },
          [](const HostRegister&) -> std::string { return "host_register"; },
          [](const HostUnregister&) -> std::string { return "host_unregister"; },
          [](const NcclCommInit&) -> std::string { return "nccl_comm_init"; },
          [](const NcclCommDestroy&) -> std::string { return "nccl_comm_destroy"; },
          [](const NcclCommRegister&) -> std::string { return "nccl_comm_register"; },
          [](const NcclCommDeregister&) -> std::string { return "nccl_comm_deregister"; },
          [](const NcclCollective& op) -> std::string { return collective_name(op.kind); },
          [](const NcclSend&) -> std::string { return "nccl_send"; },
          [](const NcclRecv&) -> std::string { return "nccl_recv"; },
          [](const GraphLaunch&) -> std::string { return "graph_launch"; },
          [](const Repeat&) -> std::string { return "repeat"; },
          [](const Region&) -> std::string { return "region"; },
          [](const NcclGroup&) -> std::string { return "nccl_group"; },
          [](const GraphCapture&) -> std::string { return "graph_capture"; },
      },
      kind);
}

std::uint32_t Spin::blocks_on(std::uint32_t sms) const {
  if (of == 0) return blocks;
  const std::uint64_t share = std::uint64_t{blocks} * sms / of;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(share, 1, kMost));
}

}  // namespace foretrace
