#include "hw/emulated/runtime/errors.h"

#include <unistd.h>

#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "hw/emulated/exported.h"
#include "hw/emulated/record.h"

namespace foretrace::emulated {
namespace {
thread_local int last_error = kSuccess;
}

int failed(Error error) { return last_error = error; }

int unsupported(const char* function) {
  static std::mutex mutex;
  static auto* const said = new std::set<std::string>;
  const std::lock_guard lock(mutex);
  if (said->insert(function).second) {
    const std::string line = std::string("foretrace: the emulated GPU has no ") + function +
                             "; the program's own error names the line that asked for it\n";
    (void)!write(STDERR_FILENO, line.data(), line.size());
    const LibraryTime time;
    record(time, format(R"("k":"unsupported","f":"%s")", function));
  }
  return failed(kNotSupported);
}

}  // namespace foretrace::emulated

using namespace foretrace::emulated;

FORETRACE_EXPORTED int cudaGetLastError() {
  FORETRACE_COUNT("cudaGetLastError");
  return std::exchange(last_error, kSuccess);
}
FORETRACE_EXPORTED int cudaPeekAtLastError() {
  FORETRACE_COUNT("cudaPeekAtLastError");
  return last_error;
}
FORETRACE_EXPORTED const char* cudaGetErrorString(int error) {
  switch (error) {
    case kSuccess:
      return "no error";
    case kOutOfMemory:
      return "out of memory";
    case kInvalidValue:
      return "invalid argument";
    case kInvalidDevice:
      return "invalid device ordinal";
    case kNotSupported:
      return "operation not supported by foretrace's emulated GPU";
    default:
      return "error of foretrace's emulated GPU";
  }
}
FORETRACE_EXPORTED const char* cudaGetErrorName(int error) {
  switch (error) {
    case kSuccess:
      return "cudaSuccess";
    case kOutOfMemory:
      return "cudaErrorMemoryAllocation";
    case kInvalidValue:
      return "cudaErrorInvalidValue";
    case kInvalidDevice:
      return "cudaErrorInvalidDevice";
    case kNotSupported:
      return "cudaErrorNotSupported";
    default:
      return "cudaErrorUnknown";
  }
}
