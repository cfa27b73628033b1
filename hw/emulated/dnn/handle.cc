#include "hw/emulated/dnn/handle.h"

#include <cstdlib>

#include "hw/emulated/device.h"
#include "hw/emulated/exported.h"
#include "hw/emulated/record.h"

using namespace foretrace::emulated;

namespace {
size_t number(const char* variable, size_t otherwise) {
  const char* const text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}
}  // namespace

FORETRACE_EXPORTED int cudnnCreate(void** handle) {
  const LibraryTime time;
  *handle = new DnnHandle;
  record(time, R"("k":"call","f":"cudnnCreate")");
  return 0;
}
FORETRACE_EXPORTED int cudnnDestroy(void* handle) {
  delete static_cast<DnnHandle*>(handle);
  return 0;
}
FORETRACE_EXPORTED int cudnnSetStream(void* handle, void* stream) {
  FORETRACE_COUNT("cudnnSetStream");
  dnn(handle).stream = stream;
  return 0;
}
FORETRACE_EXPORTED int cudnnGetStream(void* handle, void** stream) {
  *stream = dnn(handle).stream;
  return 0;
}
FORETRACE_EXPORTED size_t cudnnGetVersion() {
  constexpr size_t kDefault = 91900;  // 9.19, which PyTorch 2.11 brings
  return number("FORETRACE_CUDNN", kDefault);
}
FORETRACE_EXPORTED size_t cudnnGetCudartVersion() { return static_cast<size_t>(cuda_version()); }
FORETRACE_EXPORTED int cudnnGetProperty(int which,
                                        int* value) {  // libraryPropertyType: major, minor, patch
  constexpr size_t kMajor = 10000, kMinor = 100;
  const size_t v = cudnnGetVersion();
  *value = static_cast<int>(which == 0   ? v / kMajor
                            : which == 1 ? v % kMajor / kMinor
                                         : v % kMinor);
  return 0;
}
FORETRACE_EXPORTED const char* cudnnGetErrorString(int status) {
  return status == 0 ? "CUDNN_STATUS_SUCCESS" : "not supported by foretrace's emulated cuDNN";
}
FORETRACE_EXPORTED void cudnnGetLastErrorString(char* text, size_t room) {
  if (room > 0) text[0] = '\0';
}
