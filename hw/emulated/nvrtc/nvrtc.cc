// nvrtc: kernels compiled while the program runs. Nothing is compiled: a kernel is known by its
// name, and its binary is a few bytes that no one runs.
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "hw/emulated/exported.h"

namespace {

constexpr char kBinary[] = "no kernel";  // what stands for PTX and machine code

struct Program {
  std::set<std::string> names;  // whose addresses are handed out
};

int give_size(size_t* bytes) {
  *bytes = sizeof kBinary;
  return 0;
}
int give(char* out) {
  std::memcpy(out, kBinary, sizeof kBinary);
  return 0;
}

}  // namespace

FORETRACE_EXPORTED int nvrtcVersion(int* major, int* minor) {
  constexpr int kDefault = 13000, kMajor = 1000, kMinor = 10;
  const char* const text = std::getenv("FORETRACE_CUDA");
  const int version = text ? std::atoi(text) : kDefault;
  *major = version / kMajor;
  *minor = version % kMajor / kMinor;
  return 0;
}
FORETRACE_EXPORTED const char* nvrtcGetErrorString(int status) {
  return status == 0 ? "NVRTC_SUCCESS" : "error of foretrace's emulated nvrtc";
}
FORETRACE_EXPORTED int nvrtcCreateProgram(void** program, const char*, const char*, int,
                                          const char* const*, const char* const*) {
  *program = new Program;
  return 0;
}
FORETRACE_EXPORTED int nvrtcDestroyProgram(void** program) {
  delete static_cast<Program*>(*program);
  *program = nullptr;
  return 0;
}
FORETRACE_EXPORTED int nvrtcAddNameExpression(void* program, const char* name) {
  static_cast<Program*>(program)->names.insert(name);
  return 0;
}
FORETRACE_EXPORTED int nvrtcGetLoweredName(void* program, const char* name, const char** lowered) {
  *lowered = static_cast<Program*>(program)->names.insert(name).first->c_str();
  return 0;
}
FORETRACE_EXPORTED int nvrtcCompileProgram(void*, int, const char* const*) {
  return 0;
}
FORETRACE_EXPORTED int nvrtcGetPTXSize(void*, size_t* bytes) { return give_size(bytes); }
FORETRACE_EXPORTED int nvrtcGetPTX(void*, char* out) { return give(out); }
FORETRACE_EXPORTED int nvrtcGetCUBINSize(void*, size_t* bytes) { return give_size(bytes); }
FORETRACE_EXPORTED int nvrtcGetCUBIN(void*, char* out) { return give(out); }
FORETRACE_EXPORTED int nvrtcGetProgramLogSize(void*, size_t* bytes) {
  *bytes = 1;
  return 0;
}
FORETRACE_EXPORTED int nvrtcGetProgramLog(void*, char* out) {
  *out = '\0';
  return 0;
}
