#include <fmt/format.h>

#include <array>
#include <utility>

#include "scenarios/read/op_fields.h"

namespace foretrace {
namespace {

/// Marks every buffer that the operation allocates in some iteration.
BufferRef allocated(OpFields& fields, unsigned memories) {
  constexpr std::uint64_t kMostAssignments = std::uint64_t{1} << 20;
  BufferRef ref = fields.buffer("buffer", memories);
  auto& buffers = fields.program().buffers;
  for_each_assignment(fields.reader().domain, {&ref.index}, kMostAssignments, [&](Variables v) {
    const std::uint32_t id = ref.resolve(v).value;
    if (id < buffers.size()) buffers[id].allocated_by_program = true;
    return true;
  });
  return ref;
}

/// What cudaMallocAsync's pool holds; ncclMemAlloc's memory does not come from it.
BufferRef pooled(OpFields& fields, BufferRef ref) {
  if (fields.is_sound() && fields.buffer_of(ref).by_nccl) {
    fields.reader().problems.error(
        fields.where("buffer"),
        fmt::format("'{}' is of memory: nccl, which no stream's pool gives",
                    fields.where("buffer").text),
        "use malloc and free, which call ncclMemAlloc and ncclMemFree for it");
  }
  return ref;
}

constexpr std::array kMemoryOps{
    OpSyntax{"malloc", "buffer", "cudaMalloc of a declared buffer, ncclMemAlloc of memory: nccl",
             [](OpFields& f) -> OpKind { return Malloc{allocated(f, kDeviceMemory)}; }},
    OpSyntax{"free", "buffer", "cudaFree, ncclMemFree of memory: nccl",
             [](OpFields& f) -> OpKind { return Free{f.buffer("buffer", kDeviceMemory)}; }},
    OpSyntax{"malloc_async", "buffer [stream]", "cudaMallocAsync of a declared buffer",
             [](OpFields& f) -> OpKind {
               return MallocAsync{pooled(f, allocated(f, kDeviceMemory)), f.stream()};
             }},
    OpSyntax{"free_async", "buffer [stream]", "cudaFreeAsync",
             [](OpFields& f) -> OpKind {
               return FreeAsync{pooled(f, f.buffer("buffer", kDeviceMemory)), f.stream()};
             }},
    OpSyntax{"host_alloc", "buffer", "cudaHostAlloc of a declared pinned buffer",
             [](OpFields& f) -> OpKind { return HostAlloc{allocated(f, kPinnedMemory)}; }},
    OpSyntax{"host_free", "buffer", "cudaFreeHost",
             [](OpFields& f) -> OpKind { return HostFree{f.buffer("buffer", kPinnedMemory)}; }},
    OpSyntax{
        "host_register", "buffer", "pins a pageable buffer until host_unregister or the pass' end",
        [](OpFields& f) -> OpKind { return HostRegister{f.buffer("buffer", kPageableMemory)}; }},
    OpSyntax{
        "host_unregister", "buffer", "cudaHostUnregister: a registered buffer is pageable again",
        [](OpFields& f) -> OpKind { return HostUnregister{f.buffer("buffer", kPageableMemory)}; }},
};

}  // namespace

std::span<const OpSyntax> memory_ops() { return kMemoryOps; }

}  // namespace foretrace
