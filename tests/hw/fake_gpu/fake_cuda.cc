// The CUDA runtime, as far as the harness calls it.
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tests/hw/fake_gpu/fake_gpu.h"

namespace fake_gpu {
namespace {

std::mutex queue_mutex;
std::mutex run_mutex;
std::deque<std::function<void()>> pending;
std::atomic<bool> context_lost{false};
std::atomic<int> in_background{0};  ///< threads that run what is queued, or are about to

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

/// What the calling thread captures into; null: nothing.
thread_local Works* captured = nullptr;

}  // namespace

void queue(std::function<void()> work) {
  if (captured != nullptr) {
    captured->push_back(std::move(work));
    return;
  }
  const std::scoped_lock lock{queue_mutex};
  pending.push_back(std::move(work));
}

bool synchronize() {
  if (fails_now()) return false;
  const std::scoped_lock lock{run_mutex};
  run_all();
  return !context_lost;
}

Answer try_synchronize() {
  if (in_background > 0) return Answer::Busy;
  const std::unique_lock lock{run_mutex, std::try_to_lock};
  if (!lock.owns_lock()) return Answer::Busy;
  run_all();
  return context_lost ? Answer::Failed : Answer::Done;
}

void run_in_background() {
  ++in_background;
  std::thread{[] {
    {
      const std::scoped_lock lock{run_mutex};
      run_all();
    }
    --in_background;
  }}.detach();
}

void lose_context() { context_lost = true; }

bool is_capturing() { return captured != nullptr; }
bool begin_capture() {
  if (is_capturing()) return false;
  captured = new Works;
  return true;
}
Works* end_capture() { return std::exchange(captured, nullptr); }

bool corrupts_copies() { return std::getenv("FAKE_GPU_CORRUPT_COPIES") != nullptr; }

}  // namespace fake_gpu

namespace {

cudaError_t synchronized() {
  return fake_gpu::synchronize() ? cudaSuccess : cudaErrorIllegalAddress;
}

cudaError_t asked() {
  switch (fake_gpu::try_synchronize()) {
    case fake_gpu::Answer::Done:
      return cudaSuccess;
    case fake_gpu::Answer::Busy:
      return cudaErrorNotReady;
    case fake_gpu::Answer::Failed:
      break;
  }
  return cudaErrorIllegalAddress;
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
  const char* needed = std::getenv("FAKE_GPU_NEEDS_CONNECTIONS");
  const char* set = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const bool is_there = needed == nullptr || (set != nullptr && std::strcmp(needed, set) == 0);
  return is_there ? cudaSuccess : cudaErrorNoDevice;
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
const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorIllegalAddress ? "cudaErrorIllegalAddress" : "fakeError";
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorIllegalAddress ? "an illegal memory access was encountered"
                                          : "the stand-in was told to fail";
}
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

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int priority) {
  if (priority > 0 || priority < -5) return cudaErrorInvalidValue;  // CUDA itself would clamp
  static std::atomic<std::uintptr_t> next{0x1000};
  *stream = reinterpret_cast<cudaStream_t>(next++);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return synchronized(); }
cudaError_t cudaStreamQuery(cudaStream_t) { return asked(); }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  static std::atomic<std::uintptr_t> next{0x1000};
  *event = reinterpret_cast<cudaEvent_t>(next++);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return synchronized(); }
cudaError_t cudaEventQuery(cudaEvent_t) { return asked(); }
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) {
  *ms = 0;
  return synchronized();
}

cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* argument) {
  const bool captures = fake_gpu::is_capturing();
  fake_gpu::queue([=] { function(argument); });
  if (!captures) fake_gpu::run_in_background();
  return cudaSuccess;
}

// A graph is the list of what was queued; both handles are one.
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  return fake_gpu::begin_capture() ? cudaSuccess : cudaErrorStreamCaptureUnsupported;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  *graph = reinterpret_cast<cudaGraph_t>(fake_gpu::end_capture());
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  *executable = reinterpret_cast<cudaGraphExec_t>(
      new fake_gpu::Works{*reinterpret_cast<fake_gpu::Works*>(graph)});
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<fake_gpu::Works*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete reinterpret_cast<fake_gpu::Works*>(executable);
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t) {
  for (const auto& work : *reinterpret_cast<fake_gpu::Works*>(executable)) fake_gpu::queue(work);
  fake_gpu::run_in_background();
  return cudaSuccess;
}

}  // extern "C"
