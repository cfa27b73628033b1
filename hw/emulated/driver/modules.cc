// Kernels compiled while the program runs (nvrtc, Triton): modules, functions, launches. A
// function's handle holds its name.
#include <cstdint>
#include <mutex>
#include <set>
#include <string>

#include "hw/emulated/device.h"
#include "hw/emulated/exported.h"
#include "hw/emulated/launch.h"
#include "hw/emulated/record.h"
#include "hw/emulated/runtime/errors.h"

using namespace foretrace::emulated;

extern "C" int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int*, const void*, int, size_t);

namespace {

// One text for each name, which stays.
const char* kept(const char* name) {
  static std::mutex mutex;
  static auto* const names = new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return names->insert(name).first->c_str();
}

int loaded(const char* function, void** module) {
  const LibraryTime time;
  record(time, format(R"("k":"call","f":"%s")", function));
  *module = reinterpret_cast<void*>(uintptr_t{1});
  return kSuccess;
}

int function_of(void** function, const char* name) {
  *function = const_cast<char*>(kept(name));
  return kSuccess;
}

}  // namespace

FORETRACE_EXPORTED int cuModuleLoadData(void** module, const void*) {
  return loaded("cuModuleLoadData", module);
}
FORETRACE_EXPORTED int cuModuleLoadDataEx(void** module, const void*, unsigned, int*, void**) {
  return loaded("cuModuleLoadData", module);
}
FORETRACE_EXPORTED int cuModuleLoad(void** module, const char*) {
  return loaded("cuModuleLoadData", module);
}
FORETRACE_EXPORTED int cuModuleUnload(void*) { return kSuccess; }
FORETRACE_EXPORTED int cuModuleGetFunction(void** function, void*, const char* name) {
  return function_of(function, name);
}
FORETRACE_EXPORTED int cuLibraryLoadData(void** library, const void*, int*, void**, unsigned, int*,
                                         void**, unsigned) {
  return loaded("cuLibraryLoadData", library);
}
FORETRACE_EXPORTED int cuLibraryUnload(void*) { return kSuccess; }
FORETRACE_EXPORTED int cuLibraryGetKernel(void** kernel, void*, const char* name) {
  return function_of(kernel, name);
}
FORETRACE_EXPORTED int cuKernelGetFunction(void** function, void* kernel) {
  *function = kernel;
  return kSuccess;
}
FORETRACE_EXPORTED int cuFuncGetAttribute(int* value, int attribute, void*) {
  constexpr int kMostThreads = 0,
                kRegisters = 4;  // CU_FUNC_ATTRIBUTE_...; the others are sizes of memory: none
  constexpr int kThreads = 1024, kAssumedRegisters = 32;
  *value = attribute == kMostThreads ? kThreads : attribute == kRegisters ? kAssumedRegisters : 0;
  return kSuccess;
}
FORETRACE_EXPORTED int cuFuncSetAttribute(void*, int, int) { return kSuccess; }
FORETRACE_EXPORTED int cuFuncSetCacheConfig(void*, int) { return kSuccess; }
FORETRACE_EXPORTED int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function,
                                                                   int threads, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}
FORETRACE_EXPORTED int cuOccupancyMaxActiveClusters(int* clusters, void*,
                                                    const DriverLaunchConfig*) {
  *clusters = static_cast<int>(device()["sms"] / 2);
  return kSuccess;
}

FORETRACE_EXPORTED int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz,
                                      unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                      void* stream, void** arguments, void**) {
  return launch({static_cast<const char*>(function),
                 {gx, gy, gz},
                 {bx, by, bz},
                 shared,
                 stream,
                 arguments,
                 false,
                 true});
}
FORETRACE_EXPORTED int cuLaunchCooperativeKernel(void* function, unsigned gx, unsigned gy,
                                                 unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                                 unsigned shared, void* stream, void** arguments) {
  return launch({static_cast<const char*>(function),
                 {gx, gy, gz},
                 {bx, by, bz},
                 shared,
                 stream,
                 arguments,
                 true,
                 true});
}
FORETRACE_EXPORTED int cuLaunchKernelEx(const DriverLaunchConfig* c, void* function,
                                        void** arguments, void**) {
  Launch l{static_cast<const char*>(function),
           {c->grid[0], c->grid[1], c->grid[2]},
           {c->block[0], c->block[1], c->block[2]},
           c->shared,
           c->stream,
           arguments,
           false,
           true};
  read_attributes(l, c->attributes, c->count);
  return launch(l);
}
FORETRACE_EXPORTED int cuTensorMapEncodeTiled() {
  return kSuccess;
}  // a description of memory that no kernel reads
