#include "reports/export/kineto_names.h"

#include <fmt/format.h>

#include <map>
#include <string_view>

#include "reports/spans/span_class.h"

namespace foretrace {
namespace {

const std::map<std::string_view, const char*> kCudaCalls{
    {"spin", "cudaLaunchKernel"},
    {"gemm", "cudaLaunchKernel"},
    {"elementwise", "cudaLaunchKernel"},
    {"reduction", "cudaLaunchKernel"},
    {"memcpy_async", "cudaMemcpyAsync"},
    {"memcpy", "cudaMemcpy"},
    {"memset_async", "cudaMemsetAsync"},
    {"memset", "cudaMemset"},
    {"enable_peer_access", "cudaDeviceEnablePeerAccess"},
    {"event_record", "cudaEventRecord"},
    {"stream_wait_event", "cudaStreamWaitEvent"},
    {"event_synchronize", "cudaEventSynchronize"},
    {"event_query", "cudaEventQuery"},
    {"event_elapsed_time", "cudaEventElapsedTime"},
    {"stream_synchronize", "cudaStreamSynchronize"},
    {"stream_query", "cudaStreamQuery"},
    {"device_synchronize", "cudaDeviceSynchronize"},
    {"malloc", "cudaMalloc"},
    {"free", "cudaFree"},
    {"malloc_async", "cudaMallocAsync"},
    {"free_async", "cudaFreeAsync"},
    {"host_alloc", "cudaHostAlloc"},
    {"host_free", "cudaFreeHost"},
    {"host_register", "cudaHostRegister"},
    {"host_unregister", "cudaHostUnregister"},
    {"nccl_comm_register", "ncclCommRegister"},
    {"nccl_comm_deregister", "ncclCommDeregister"}};

/// NCCL's spelling inside its kernels' names.
const std::map<std::string_view, const char*> kNcclKernels{{"nccl_all_reduce", "AllReduce"},
                                                           {"nccl_broadcast", "Broadcast"},
                                                           {"nccl_reduce", "Reduce"},
                                                           {"nccl_all_gather", "AllGather"},
                                                           {"nccl_reduce_scatter", "ReduceScatter"},
                                                           {"nccl_send", "SendRecv"},
                                                           {"nccl_recv", "SendRecv"},
                                                           {"nccl_all_to_all", "SendRecv"},
                                                           {"nccl_gather", "SendRecv"},
                                                           {"nccl_scatter", "SendRecv"},
                                                           {"nccl_group", "SendRecv"}};

std::string copy_name(std::string_view variant) {
  const std::string host = variant.ends_with("pageable") ? "Pageable" : "Pinned";
  if (variant.starts_with("h2d")) return fmt::format("Memcpy HtoD ({} -> Device)", host);
  if (variant.starts_with("d2h")) return fmt::format("Memcpy DtoH (Device -> {})", host);
  if (variant == "d2d") return "Memcpy DtoD (Device -> Device)";
  if (variant == "p2p") return "Memcpy PtoP (Device -> Device)";
  return "Memcpy";
}

std::string nccl_name(const OpRow& op, const SpanDetail& detail) {
  const auto found = kNcclKernels.find(op.kind);
  std::string name =
      fmt::format("ncclDevKernel_{}", found == kNcclKernels.end() ? op.kind : found->second);
  for (const std::string& part : {op.variant, detail.algorithm, detail.protocol}) {
    if (!part.empty()) name += "_" + part;
  }
  return name;
}

}  // namespace

std::string cuda_call_name(const OpRow& op) {
  const auto found = kCudaCalls.find(op.kind);
  if (found != kCudaCalls.end()) return found->second;
  return op.kind.starts_with("nccl") ? "cudaLaunchKernelExC" : op.kind;
}

KinetoActivity stream_activity(const OpRow& op, const SpanDetail& detail) {
  if (op.kind == "event_record") return {};
  if (op.kind == "stream_wait_event") return {"cuda_sync", "Stream Wait Event"};
  if (op.kind.starts_with("memset")) return {"gpu_memset", "Memset (Device)"};
  if (op.kind.starts_with("memcpy")) return {"gpu_memcpy", copy_name(op.variant)};
  if (!detail.kernel.empty()) return {"kernel", detail.kernel};
  return {"kernel", op.kind.starts_with("nccl") ? nccl_name(op, detail) : title_of(op)};
}

}  // namespace foretrace
