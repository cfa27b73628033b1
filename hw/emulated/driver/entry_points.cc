// How the runtime gives out the driver's functions: by name, from this library.
#include <dlfcn.h>

#include <string>

#include "hw/emulated/abi.h"
#include "hw/emulated/exported.h"

using namespace foretrace::emulated;

namespace {

// Stands for what the driver has and the emulation has not: the caller sees an error.
int not_supported() { return kNotSupported; }

int find(const char* name, void** function, int* result) {
  constexpr int kFound = 0;
  *function = dlsym(RTLD_DEFAULT, name);
  if (!*function) *function = dlsym(RTLD_DEFAULT, (std::string(name) + "_v2").c_str());
  if (!*function) *function = reinterpret_cast<void*>(not_supported);
  if (result) *result = kFound;
  return kSuccess;
}

}  // namespace

FORETRACE_EXPORTED int cudaGetDriverEntryPoint(const char* name, void** function,
                                               unsigned long long, int* result) {
  return find(name, function, result);
}
FORETRACE_EXPORTED int cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                                        unsigned long long, int* result) {
  return find(name, function, result);
}
FORETRACE_EXPORTED int cuGetProcAddress_v2(const char* name, void** function, int,
                                           unsigned long long, int* result) {
  return find(name, function, result);
}
