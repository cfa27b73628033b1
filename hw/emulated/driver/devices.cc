// The driver's functions (libcuda.so.1) about devices and contexts. There is one context for each
// GPU, which is always current.
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "hw/emulated/device.h"
#include "hw/emulated/exported.h"
#include "hw/emulated/memory.h"
#include "hw/emulated/record.h"
#include "hw/emulated/runtime/errors.h"
#include "hw/emulated/runtime/properties.h"

using namespace foretrace::emulated;

extern "C" int cudaDriverGetVersion(int*);
extern "C" int cudaDeviceSynchronize();

namespace {
void* context_of(int index) { return reinterpret_cast<void*>(static_cast<uintptr_t>(index) + 1); }
int device_of(void* context) { return static_cast<int>(reinterpret_cast<uintptr_t>(context)) - 1; }
}  // namespace

FORETRACE_EXPORTED int cuInit(unsigned) { return kSuccess; }
FORETRACE_EXPORTED int cuDriverGetVersion(int* version) { return cudaDriverGetVersion(version); }
FORETRACE_EXPORTED int cuDeviceGetCount(int* n) {
  *n = device_count();
  return kSuccess;
}
FORETRACE_EXPORTED int cuDeviceGet(int* d, int index) {
  *d = index;
  return kSuccess;
}
FORETRACE_EXPORTED int cuDeviceGetName(char* text, int room, int) {
  std::snprintf(text, static_cast<size_t>(room), "%s", device().name().c_str());
  return kSuccess;
}
FORETRACE_EXPORTED int cuDeviceGetAttribute(int* value, int attribute, int index) {
  *value = attribute_value(attribute, index);
  return kSuccess;
}
FORETRACE_EXPORTED int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = total_bytes();
  return kSuccess;
}
FORETRACE_EXPORTED int cuDeviceGetUuid_v2(char* uuid, int index) {
  constexpr size_t kUuid = 16;
  std::memset(uuid, 0, kUuid);
  uuid[0] = static_cast<char>(index + 1);
  return kSuccess;
}
FORETRACE_EXPORTED int cuDeviceGetUuid(char* uuid, int index) {
  return cuDeviceGetUuid_v2(uuid, index);
}
FORETRACE_EXPORTED int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return kSuccess;
}
FORETRACE_EXPORTED int cuDevicePrimaryCtxRetain(void** context, int index) {
  *context = context_of(index);
  return kSuccess;
}
FORETRACE_EXPORTED int cuDevicePrimaryCtxRelease_v2(int) { return kSuccess; }
FORETRACE_EXPORTED int cuCtxGetCurrent(void** context) {
  *context = context_of(current_device());
  return kSuccess;
}
FORETRACE_EXPORTED int cuCtxSetCurrent(void* context) {
  if (context) current_device() = device_of(context);
  return kSuccess;
}
FORETRACE_EXPORTED int cuCtxPushCurrent_v2(void* context) { return cuCtxSetCurrent(context); }
FORETRACE_EXPORTED int cuCtxPopCurrent_v2(void** context) {
  return context ? cuCtxGetCurrent(context) : kSuccess;
}
FORETRACE_EXPORTED int cuCtxGetDevice(int* index) {
  *index = current_device();
  return kSuccess;
}
FORETRACE_EXPORTED int cuCtxSynchronize() { return cudaDeviceSynchronize(); }
FORETRACE_EXPORTED int cuCtxSetLimit(int, size_t) { return kSuccess; }
FORETRACE_EXPORTED int cuCtxGetLimit(size_t* value, int) {
  *value = 0;
  return kSuccess;
}
FORETRACE_EXPORTED int cuGetErrorString(int error, const char** text) {
  *text = error == kSuccess ? "no error" : "error of foretrace's emulated GPU";
  return kSuccess;
}
FORETRACE_EXPORTED int cuGetErrorName(int error, const char** text) {
  *text = error == kSuccess        ? "CUDA_SUCCESS"
          : error == kNotSupported ? "CUDA_ERROR_NOT_SUPPORTED"
                                   : "CUDA_ERROR_UNKNOWN";
  return kSuccess;
}
FORETRACE_EXPORTED int cuPointerGetAttribute(void* data, int attribute, uintptr_t address) {
  constexpr int kMemoryType = 2, kDevicePointer = 3, kDeviceOrdinal = 9, kInvalid = 1;
  const auto* const pointer = reinterpret_cast<const void*>(address);
  const auto block = allocation_of(pointer);
  if (!block && !pinned(pointer)) return kInvalid;
  if (attribute == kMemoryType) {
    const unsigned type = block ? 2 : 1;  // CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST
    std::memcpy(data, &type, sizeof type);
  } else if (attribute == kDevicePointer) {
    std::memcpy(data, &address, sizeof address);
  } else if (attribute == kDeviceOrdinal) {
    const int index = block ? block->device : current_device();
    std::memcpy(data, &index, sizeof index);
  } else {
    return unsupported("cuPointerGetAttribute");
  }
  return kSuccess;
}
