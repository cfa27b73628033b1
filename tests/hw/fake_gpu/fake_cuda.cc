// The CUDA runtime, as far as the harness calls it.
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>

#include "fake_gpu.h"

namespace fake_gpu {
namespace {

std::mutex queue_mutex;
std::mutex run_mutex;
std::deque<std::function<void()>> pending;

bool fails_now() {
  static std::atomic<int> synchronizations{0};
  const char* failing = std::getenv("FAKE_GPU_FAIL_RANK");
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (failing == nullptr || rank == nullptr || std::strcmp(failing, rank) != 0) return false;
  return ++synchronizations >= 10;
}

void run_all() {
  for (;;) {
    std::function<void()> work;
    {
      const std::scoped_lock lock{queue_mutex};
      if (pending.empty()) return;
      work = std::move(pending.front());
      pending.pop_front();
    }
    work();
  }
}

}  // namespace

void queue(std::function<void()> work) {
  const std::scoped_lock lock{queue_mutex};
  pending.push_back(std::move(work));
}

bool synchronize() {
  if (fails_now()) return false;
  const std::scoped_lock lock{run_mutex};
  run_all();
  return true;
}

bool try_synchronize() {
  const std::unique_lock lock{run_mutex, std::try_to_lock};
  if (lock.owns_lock()) run_all();
  return lock.owns_lock();
}

bool corrupts_copies() { return std::getenv("FAKE_GPU_CORRUPT_COPIES") != nullptr; }

}  // namespace fake_gpu

namespace {

cudaError_t synchronized() {
  return fake_gpu::synchronize() ? cudaSuccess : cudaErrorIllegalAddress;
}

cudaError_t copy_later(void* to, const void* from, std::size_t bytes) {
  fake_gpu::queue([=] {
    std::memmove(to, from, bytes);
    if (fake_gpu::corrupts_copies() && bytes > 0) static_cast<char*>(to)[bytes - 1] ^= 1;
  });
  return cudaSuccess;
}

cudaError_t set_later(void* to, int value, std::size_t bytes) {
  fake_gpu::queue([=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

cudaError_t allocate(void** memory, std::size_t bytes) {
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 4;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::memset(properties, 0, sizeof *properties);
  std::strcpy(properties->name, "no GPU (a stand-in for tests)");
  properties->totalGlobalMem = std::size_t{1} << 32;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return synchronized(); }
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
cudaError_t cudaDeviceDisablePeerAccess(int) { return cudaSuccess; }
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr, int, int) {
  *value = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int) {
  std::strncpy(id, "0000:00:00.0", static_cast<std::size_t>(length));
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
const char* cudaGetErrorName(cudaError_t) { return "fakeError"; }
const char* cudaGetErrorString(cudaError_t) { return "the stand-in was told to fail"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }

cudaError_t cudaMalloc(void** memory, std::size_t bytes) { return allocate(memory, bytes); }
cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t) {
  return allocate(memory, bytes);
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  return allocate(memory, bytes);
}
cudaError_t cudaFree(void* memory) {
  fake_gpu::synchronize();
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t) {
  fake_gpu::queue([=] { std::free(memory); });
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory); }
cudaError_t cudaHostRegister(void*, std::size_t, unsigned) { return cudaSuccess; }
cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t) {
  return copy_later(to, from, bytes);
}
// The harness's own checks copy synchronously: those are never damaged.
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  const cudaError_t result = synchronized();
  std::memmove(to, from, bytes);
  return result;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                                cudaStream_t) {
  return copy_later(to, from, bytes);
}
cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, std::size_t bytes) {
  return cudaMemcpy(to, from, bytes, cudaMemcpyDefault);
}
cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return set_later(to, value, bytes);
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t) {
  return set_later(to, value, bytes);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  static std::atomic<std::uintptr_t> next{0x1000};
  *stream = reinterpret_cast<cudaStream_t>(next++);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return synchronized(); }
cudaError_t cudaStreamQuery(cudaStream_t) {
  return fake_gpu::try_synchronize() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  static std::atomic<std::uintptr_t> next{0x1000};
  *event = reinterpret_cast<cudaEvent_t>(next++);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return synchronized(); }
cudaError_t cudaEventQuery(cudaEvent_t) {
  return fake_gpu::try_synchronize() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) {
  *ms = 0;
  return synchronized();
}

}  // extern "C"
