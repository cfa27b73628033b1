// cudaMalloc and its relatives.
#include <cstring>

#include "hw/emulated/device.h"
#include "hw/emulated/exported.h"
#include "hw/emulated/handles.h"
#include "hw/emulated/memory.h"
#include "hw/emulated/record.h"
#include "hw/emulated/runtime/errors.h"

using namespace foretrace::emulated;

namespace {

int take(const LibraryTime& time, void** address, size_t bytes, Place place) {
  uint32_t id = 0;
  *address = bytes > 0 ? allocate(current_device(), bytes, &id) : nullptr;
  if (*address || bytes == 0) {
    record(time, format(R"("k":"malloc","n":%zu,"a":%u)", bytes, id), place);
    return kSuccess;
  }
  record(time, format(R"("k":"malloc","n":%zu,"ok":false)", bytes), place);
  return failed(kOutOfMemory);
}

int give(const LibraryTime& time, void* address, Place place) {
  if (!address) return kSuccess;
  const auto block = release(address);
  if (!block) return failed(kInvalidValue);
  record(time, format(R"("k":"free","n":%zu,"a":%u)", block->bytes, block->id), place);
  return kSuccess;
}

}  // namespace

FORETRACE_EXPORTED int cudaMalloc(void** address, size_t bytes) {
  const LibraryTime time;
  return take(time, address, bytes, {});
}
FORETRACE_EXPORTED int cudaMallocManaged(void** address, size_t bytes, unsigned) {
  return cudaMalloc(address, bytes);
}
FORETRACE_EXPORTED int cudaMallocAsync(void** address, size_t bytes, void* stream) {
  const LibraryTime time;
  return take(time, address, bytes, on(stream_of(stream)));
}
FORETRACE_EXPORTED int cudaFree(void* address) {
  const LibraryTime time;
  return give(time, address, {});
}
FORETRACE_EXPORTED int cudaFreeAsync(void* address, void* stream) {
  const LibraryTime time;
  return give(time, address, on(stream_of(stream)));
}
FORETRACE_EXPORTED int cudaHostAlloc(void** address, size_t bytes, unsigned) {
  const LibraryTime time;
  *address = allocate_host(bytes);
  record(time, format(R"("k":"host_alloc","n":%zu)", bytes));
  return *address ? kSuccess : failed(kOutOfMemory);
}
FORETRACE_EXPORTED int cudaMallocHost(void** address, size_t bytes) {
  return cudaHostAlloc(address, bytes, 0);
}
FORETRACE_EXPORTED int cudaFreeHost(void* address) {
  const LibraryTime time;
  record(time, format(R"("k":"host_free","n":%zu)", release_host(address)));
  return kSuccess;
}
FORETRACE_EXPORTED int cudaHostRegister(void* address, size_t bytes, unsigned) {
  const LibraryTime time;
  register_host(address, bytes);
  record(time, format(R"("k":"host_alloc","n":%zu,"how":"register")", bytes));
  return kSuccess;
}
FORETRACE_EXPORTED int cudaHostUnregister(void* address) {
  unregister_host(address);
  return kSuccess;
}
FORETRACE_EXPORTED int cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  *device = host;
  return kSuccess;
}
FORETRACE_EXPORTED int cudaMemGetInfo(size_t* free, size_t* total) {
  FORETRACE_COUNT("cudaMemGetInfo");
  *total = total_bytes();
  *free = *total - used_bytes(current_device());
  return kSuccess;
}
FORETRACE_EXPORTED int cudaPointerGetAttributes(PointerAttributes* out, const void* address) {
  FORETRACE_COUNT("cudaPointerGetAttributes");
  void* const pointer = const_cast<void*>(address);
  if (on_device(address)) {
    const auto block = allocation_of(address);
    *out = {kDeviceMemory, block ? block->device : current_device(), pointer, nullptr};
  } else if (pinned(address)) {
    *out = {kHost, current_device(), pointer, pointer};
  } else {
    *out = {kUnregistered, -1, nullptr, pointer};
  }
  return kSuccess;
}

// Pools: cudaMallocAsync above needs none, and PyTorch only names them.
FORETRACE_EXPORTED int cudaDeviceGetDefaultMemPool(void** pool, int device) {
  *pool = reinterpret_cast<void*>(static_cast<uintptr_t>(device) + 1);
  return kSuccess;
}
FORETRACE_EXPORTED int cudaMemPoolGetAttribute(void* pool, int, void* value) {
  const uint64_t used = used_bytes(static_cast<int>(reinterpret_cast<uintptr_t>(pool)) - 1);
  std::memcpy(value, &used, sizeof used);
  return kSuccess;
}
FORETRACE_EXPORTED int cudaMemPoolSetAttribute(void*, int, void*) { return kSuccess; }
FORETRACE_EXPORTED int cudaMemPoolSetAccess(void*, const void*, size_t) { return kSuccess; }
FORETRACE_EXPORTED int cudaMemPoolTrimTo(void*, size_t) { return kSuccess; }
