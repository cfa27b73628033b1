#include "hw/emulated/blas/handle.h"

#include "hw/emulated/device.h"
#include "hw/emulated/exported.h"
#include "hw/emulated/record.h"

using namespace foretrace::emulated;

namespace {
int version() {  // cuBLAS of that toolkit: 130000 for 13.0
  constexpr int kTen = 10;
  return cuda_version() * kTen;
}
}  // namespace

FORETRACE_EXPORTED int cublasCreate_v2(void** handle) {
  const LibraryTime time;
  *handle = new BlasHandle;
  record(time, R"("k":"call","f":"cublasCreate")");
  return 0;
}
FORETRACE_EXPORTED int cublasDestroy_v2(void* handle) {
  delete static_cast<BlasHandle*>(handle);
  return 0;
}
FORETRACE_EXPORTED int cublasSetStream_v2(void* handle, void* stream) {
  FORETRACE_COUNT("cublasSetStream");
  blas(handle).stream = stream;
  return 0;
}
FORETRACE_EXPORTED int cublasGetStream_v2(void* handle, void** stream) {
  *stream = blas(handle).stream;
  return 0;
}
FORETRACE_EXPORTED int cublasSetWorkspace_v2(void* handle, void*, size_t bytes) {
  FORETRACE_COUNT("cublasSetWorkspace");
  blas(handle).workspace = bytes;
  return 0;
}
FORETRACE_EXPORTED int cublasGetMathMode(void* handle, int* mode) {
  *mode = blas(handle).math_mode;
  return 0;
}
FORETRACE_EXPORTED int cublasSetMathMode(void* handle, int mode) {
  FORETRACE_COUNT("cublasSetMathMode");
  blas(handle).math_mode = mode;
  return 0;
}
FORETRACE_EXPORTED int cublasGetPointerMode_v2(void* handle, int* mode) {
  *mode = blas(handle).pointer_mode;
  return 0;
}
FORETRACE_EXPORTED int cublasSetPointerMode_v2(void* handle, int mode) {
  blas(handle).pointer_mode = mode;
  return 0;
}
FORETRACE_EXPORTED int cublasSetAtomicsMode(void*, int) { return 0; }
FORETRACE_EXPORTED int cublasGetVersion_v2(void*, int* v) {
  *v = version();
  return 0;
}
FORETRACE_EXPORTED size_t cublasLtGetVersion() { return static_cast<size_t>(version()); }
FORETRACE_EXPORTED size_t cublasLtGetCudartVersion() {
  return static_cast<size_t>(cuda_version());
}
