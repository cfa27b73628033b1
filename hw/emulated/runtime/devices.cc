// Which GPUs there are, and what they say of themselves.
#include <cstdio>
#include <cstring>

#include "hw/emulated/device.h"
#include "hw/emulated/exported.h"
#include "hw/emulated/memory.h"
#include "hw/emulated/record.h"
#include "hw/emulated/runtime/errors.h"
#include "hw/emulated/runtime/properties.h"

namespace foretrace::emulated {
namespace {

constexpr int kFirstBus = 0x19;  // any: each GPU has its own
constexpr int kMostThreadsPerBlock = 1024, kWarp = 32, kMostBlockZ = 64, kMostGridX = 2147483647,
              kMostGridYZ = 65535;
constexpr int kTextureAlignment = 512, kConstantMemory = 65536, kLowestPriority = 0,
              kHighestPriority = -5;

int of(const char* key) { return static_cast<int>(device()[key]); }

// What both layouts share.
template <typename Properties>
int fill(Properties* p, int index) {
  if (index < 0 || index >= device_count()) return failed(kInvalidDevice);
  std::memset(static_cast<void*>(p), 0, sizeof *p);
  std::snprintf(p->name, sizeof p->name, "%s", device().name().c_str());
  p->uuid[0] = static_cast<char>(index + 1);
  p->totalGlobalMem = total_bytes();
  p->sharedMemPerBlock = static_cast<size_t>(device()["shared_per_block"]);
  p->sharedMemPerBlockOptin = static_cast<size_t>(device()["shared_per_block_optin"]);
  p->sharedMemPerMultiprocessor = static_cast<size_t>(device()["shared_per_sm"]);
  p->reservedSharedMemPerBlock = static_cast<size_t>(device()["shared_reserved"]);
  p->regsPerBlock = of("registers_per_block");
  p->regsPerMultiprocessor = of("registers_per_sm");
  p->warpSize = kWarp;
  p->maxThreadsPerBlock = kMostThreadsPerBlock;
  p->maxThreadsPerMultiProcessor = of("threads_per_sm");
  p->maxBlocksPerMultiProcessor = of("blocks_per_sm");
  for (int i = 0; i < 3; ++i) {
    p->maxThreadsDim[i] = i == 2 ? kMostBlockZ : kMostThreadsPerBlock;
    p->maxGridSize[i] = i == 0 ? kMostGridX : kMostGridYZ;
  }
  p->major = of("major");
  p->minor = of("minor");
  p->multiProcessorCount = of("sms");
  p->l2CacheSize = of("l2");
  p->persistingL2CacheMaxSize = of("persisting_l2");
  p->memoryBusWidth = of("memory_bus_bits");
  p->asyncEngineCount = of("copy_engines");
  p->clusterLaunch = of("clusters");
  p->totalConstMem = kConstantMemory;
  p->textureAlignment = kTextureAlignment;
  p->memPitch = kMostGridX;
  p->pciBusID = kFirstBus + index;
  p->unifiedAddressing = p->managedMemory = p->concurrentKernels = p->canMapHostMemory =
      p->cooperativeLaunch = 1;
  p->streamPrioritiesSupported = p->globalL1CacheSupported = p->localL1CacheSupported =
      p->ECCEnabled = 1;
  p->hostRegisterSupported = p->memoryPoolsSupported = p->computePreemptionSupported =
      p->concurrentManagedAccess = 1;
  return kSuccess;
}

}  // namespace

int attribute_value(int attribute, int index) {
  switch (attribute) {
    case 1:
    case 2:
    case 3:
      return kMostThreadsPerBlock;
    case 4:
      return kMostBlockZ;
    case 5:
      return kMostGridX;
    case 6:
    case 7:
      return kMostGridYZ;
    case 8:
      return of("shared_per_block");
    case 9:
      return kConstantMemory;
    case 10:
      return kWarp;
    case 11:
      return kMostGridX;
    case 12:
      return of("registers_per_block");
    case 13:
      return of("clock_khz");
    case 14:
      return kTextureAlignment;
    case 16:
      return of("sms");
    case 17:
    case 18:
    case 20:
    case 34:
    case 35:
    case 50:
      return 0;  // timeout, integrated, compute mode, slot, TCC, domain
    case 33:
      return kFirstBus + index;
    case 36:
      return of("memory_clock_khz");
    case 37:
      return of("memory_bus_bits");
    case 38:
      return of("l2");
    case 39:
      return of("threads_per_sm");
    case 40:
      return of("copy_engines");
    case 75:
      return of("major");
    case 76:
      return of("minor");
    case 81:
      return of("shared_per_sm");
    case 82:
      return of("registers_per_sm");
    case 84:
    case 85:
    case 86:
    case 88:
    case 100:
    case 101:
      return 0;  // boards of several GPUs, pageable access
    case 87:
      return 2;
    case 97:
      return of("shared_per_block_optin");
    case 102:
    case 103:
    case 104:
    case 105:
      return 1;  // virtual addresses and their handles
    case 106:
      return of("blocks_per_sm");
    case 108:
    case 109:
      return of("persisting_l2");
    case 111:
      return of("shared_reserved");
    case 116:
    case 117:
    case 118:
    case 121:
    case 128:
    case 132:
      return 0;  // RDMA, arrays, fabric handles, multicast
    case 119:
      return 1;
    case 120:
      return of("clusters");
    default:
      return 1;
  }
}

}  // namespace foretrace::emulated

using namespace foretrace::emulated;

FORETRACE_EXPORTED int cudaGetDeviceCount(int* n) {
  *n = device_count();
  return kSuccess;
}
FORETRACE_EXPORTED int cudaGetDevice(int* index) {
  FORETRACE_COUNT("cudaGetDevice");
  *index = current_device();
  return kSuccess;
}
FORETRACE_EXPORTED int cudaSetDevice(int index) {
  FORETRACE_COUNT("cudaSetDevice");
  if (index < 0 || index >= device_count()) return failed(kInvalidDevice);
  current_device() = index;
  return kSuccess;
}
FORETRACE_EXPORTED int cudaGetDeviceProperties_v2(Properties12* properties, int index) {
  const int error = fill(properties, index);
  if (error != kSuccess) return error;
  properties->clockRate = of("clock_khz");
  properties->memoryClockRate = of("memory_clock_khz");
  properties->deviceOverlap = 1;
  return kSuccess;
}
FORETRACE_EXPORTED int cudaGetDeviceProperties(void* properties, int index) {
  constexpr int kThirteen = 13000;
  if (cuda_version() < kThirteen)
    return cudaGetDeviceProperties_v2(static_cast<Properties12*>(properties), index);
  return fill(static_cast<Properties13*>(properties), index);
}
FORETRACE_EXPORTED int cudaDeviceGetAttribute(int* value, int attribute, int index) {
  *value = attribute_value(attribute, index);
  return kSuccess;
}
FORETRACE_EXPORTED int cudaDeviceSynchronize() {
  const LibraryTime time;
  record(time, R"("k":"sync","w":"device")");
  return kSuccess;
}
FORETRACE_EXPORTED int cudaDriverGetVersion(int* version) {
  *version = cuda_version();
  return kSuccess;
}
FORETRACE_EXPORTED int cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }
FORETRACE_EXPORTED int cudaDeviceGetPCIBusId(char* text, int room, int index) {
  std::snprintf(text, static_cast<size_t>(room), "0000:%02x:00.0",
                static_cast<unsigned>(kFirstBus + index));
  return kSuccess;
}
FORETRACE_EXPORTED int cudaDeviceCanAccessPeer(int* can, int from, int to) {
  *can = from != to;
  return kSuccess;
}
FORETRACE_EXPORTED int cudaDeviceEnablePeerAccess(int, unsigned) { return kSuccess; }
FORETRACE_EXPORTED int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = kLowestPriority;
  *greatest = kHighestPriority;
  return kSuccess;
}
FORETRACE_EXPORTED int cudaDeviceSetLimit(int, size_t) { return kSuccess; }
FORETRACE_EXPORTED int cudaDeviceGetLimit(size_t* value, int) {
  constexpr size_t kStack = 1024;  // bytes of a thread's stack, as CUDA begins
  *value = kStack;
  return kSuccess;
}
FORETRACE_EXPORTED int cudaProfilerStart() { return kSuccess; }
FORETRACE_EXPORTED int cudaProfilerStop() { return kSuccess; }
