// NVML of the emulated machine (libnvidia-ml.so.1): so many devices, on which nothing runs. A
// library of its own, since it is loaded by its name.
#include <cstdlib>
#include <cstring>

#include "hw/emulated/exported.h"

namespace {

enum : int { kNvmlSuccess = 0, kNvmlNotSupported = 3 };

unsigned devices() {
  const char* const text = std::getenv("FORETRACE_DEVICES");
  return text ? static_cast<unsigned>(std::atoi(text)) : 1;
}
int handle(unsigned index, void** out) {
  *out = reinterpret_cast<void*>(static_cast<size_t>(index) + 1);
  return kNvmlSuccess;
}

}  // namespace

FORETRACE_EXPORTED int nvmlInit() { return kNvmlSuccess; }
FORETRACE_EXPORTED int nvmlInit_v2() { return kNvmlSuccess; }
FORETRACE_EXPORTED int nvmlInitWithFlags(unsigned) { return kNvmlSuccess; }
FORETRACE_EXPORTED int nvmlShutdown() { return kNvmlSuccess; }
FORETRACE_EXPORTED const char* nvmlErrorString(int) {
  return "not supported by foretrace's emulated NVML";
}
FORETRACE_EXPORTED int nvmlDeviceGetCount(unsigned* n) {
  *n = devices();
  return kNvmlSuccess;
}
FORETRACE_EXPORTED int nvmlDeviceGetCount_v2(unsigned* n) { return nvmlDeviceGetCount(n); }
FORETRACE_EXPORTED int nvmlDeviceGetHandleByIndex(unsigned index, void** out) {
  return handle(index, out);
}
FORETRACE_EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** out) {
  return handle(index, out);
}
FORETRACE_EXPORTED int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** out) {
  return handle(0, out);
}
FORETRACE_EXPORTED int nvmlDeviceGetComputeRunningProcesses(void*, unsigned* n, void*) {
  *n = 0;
  return kNvmlSuccess;
}
FORETRACE_EXPORTED int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* n, void*) {
  *n = 0;
  return kNvmlSuccess;
}
FORETRACE_EXPORTED int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  constexpr int kDefault = 13000;
  const char* const text = std::getenv("FORETRACE_CUDA");
  *version = text ? std::atoi(text) : kDefault;
  return kNvmlSuccess;
}

#define FORETRACE_NOT_IN_NVML(function) \
  FORETRACE_EXPORTED int function() { return kNvmlNotSupported; }
FORETRACE_NOT_IN_NVML(nvmlDeviceGetNvLinkRemoteDeviceType)
FORETRACE_NOT_IN_NVML(nvmlDeviceGetNvLinkRemotePciInfo_v2)
FORETRACE_NOT_IN_NVML(nvmlDeviceGetNvLinkState)
FORETRACE_NOT_IN_NVML(nvmlDeviceGetGpuFabricInfoV)
FORETRACE_NOT_IN_NVML(nvmlDeviceGetUUID)
FORETRACE_NOT_IN_NVML(nvmlDeviceGetMemoryInfo)
FORETRACE_NOT_IN_NVML(nvmlDeviceGetPciInfo_v3)
FORETRACE_NOT_IN_NVML(nvmlDeviceGetP2PStatus)
