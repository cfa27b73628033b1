// cuBLAS' products of a matrix and a vector, and of two vectors: one record each.
#include "hw/emulated/blas/handle.h"
#include "hw/emulated/exported.h"
#include "hw/emulated/handles.h"
#include "hw/emulated/record.h"

using namespace foretrace::emulated;

namespace {

int gemv(void* h, const char* function, const char* type, int transpose, int m, int n) {
  const LibraryTime time;
  record(time,
         format(R"("k":"lib","f":"%s","ops":[{"op":"gemv","m":%d,"n":%d,"ta":%s,"d":"%s"}])",
                function, m, n, transpose ? "true" : "false", type),
         on(stream_of(blas(h).stream)));
  return 0;
}

int dot(void* h, const char* function, const char* type, int n) {
  const LibraryTime time;
  record(time,
         format(R"("k":"lib","f":"%s","ops":[{"op":"dot","n":%d,"d":"%s"}])", function, n, type),
         on(stream_of(blas(h).stream)));
  return 0;
}

}  // namespace

#define FORETRACE_GEMV(letter, type)                                                              \
  FORETRACE_EXPORTED int cublas##letter##gemv_v2(void* h, int t, int m, int n, const void*,       \
                                                 const void*, int, const void*, int, const void*, \
                                                 void*, int) {                                    \
    return gemv(h, "cublas" #letter "gemv", type, t, m, n);                                       \
  }
FORETRACE_GEMV(S, "f32")
FORETRACE_GEMV(D, "f64")
FORETRACE_GEMV(C, "c64")
FORETRACE_GEMV(Z, "c128")
FORETRACE_EXPORTED int cublasSdot_v2(void* h, int n, const float*, int, const float*, int, float*) {
  return dot(h, "cublasSdot", "f32", n);
}
FORETRACE_EXPORTED int cublasDdot_v2(void* h, int n, const double*, int, const double*, int,
                                     double*) {
  return dot(h, "cublasDdot", "f64", n);
}
FORETRACE_EXPORTED int cublasDotEx(void* h, int n, const void*, int, int, const void*, int, int,
                                   void*, int, int) {
  return dot(h, "cublasDotEx", "f16", n);
}
