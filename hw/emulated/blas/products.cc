// cuBLAS' products.
#include <cstdint>

#include "hw/emulated/blas/handle.h"
#include "hw/emulated/blas/product.h"
#include "hw/emulated/blas/types.h"
#include "hw/emulated/exported.h"

using namespace foretrace::emulated;

namespace {

constexpr int kTensorFloat = 3;  // CUBLAS_TF32_TENSOR_OP_MATH

// The types of a product that names each.
Product typed(Product p, int a, int b, int c, int compute, const void* beta) {
  p.a = type_word(a);
  p.b = type_word(b);
  p.c = p.d = type_word(c);
  p.compute = compute_word(compute);
  p.scale = p.compute == "f16" || p.compute == "f64" || p.compute == "i32" ? p.compute
            : a == 4 || a == 5                                             ? p.a
                                                                           : "f32";
  p.accumulates = nonzero(beta, p.scale);
  return p;
}

// Of a product of one type.
Product plain(Product p, void* handle, const char* type, const void* beta) {
  p.a = p.b = p.c = p.d = p.compute = p.scale = type;
  if (p.a == "f32" && blas(handle).math_mode == kTensorFloat) p.compute = "tf32";
  p.accumulates = nonzero(beta, p.scale);
  return p;
}

int say(Product p, void* handle) {
  p.workspace = blas(handle).workspace;
  record_product(p, blas(handle).stream);
  return 0;
}

}  // namespace

FORETRACE_EXPORTED int cublasGemmEx(void* h, int ta, int tb, int m, int n, int k, const void*,
                                    const void* a, int at, int lda, const void* b, int bt, int ldb,
                                    const void* beta, void* c, int ct, int ldc, int compute, int) {
  return say(typed({.function = "cublasGemmEx",
                    .m = m,
                    .n = n,
                    .k = k,
                    .transpose_a = ta != 0,
                    .transpose_b = tb != 0,
                    .lda = lda,
                    .ldb = ldb,
                    .ldd = ldc,
                    .pa = a,
                    .pb = b,
                    .pc = c,
                    .pd = c},
                   at, bt, ct, compute, beta),
             h);
}
FORETRACE_EXPORTED int cublasGemmStridedBatchedEx(void* h, int ta, int tb, int m, int n, int k,
                                                  const void*, const void* a, int at, int lda,
                                                  long long, const void* b, int bt, int ldb,
                                                  long long, const void* beta, void* c, int ct,
                                                  int ldc, long long, int batch, int compute, int) {
  return say(typed({.function = "cublasGemmStridedBatchedEx",
                    .m = m,
                    .n = n,
                    .k = k,
                    .batch = batch,
                    .transpose_a = ta != 0,
                    .transpose_b = tb != 0,
                    .lda = lda,
                    .ldb = ldb,
                    .ldd = ldc,
                    .pa = a,
                    .pb = b,
                    .pc = c,
                    .pd = c},
                   at, bt, ct, compute, beta),
             h);
}
FORETRACE_EXPORTED int cublasSgemmEx(void* h, int ta, int tb, int m, int n, int k, const float*,
                                     const void* a, int at, int lda, const void* b, int bt, int ldb,
                                     const float* beta, void* c, int ct, int ldc) {
  constexpr int kCompute32 = 68;
  return say(typed({.function = "cublasSgemmEx",
                    .m = m,
                    .n = n,
                    .k = k,
                    .transpose_a = ta != 0,
                    .transpose_b = tb != 0,
                    .lda = lda,
                    .ldb = ldb,
                    .ldd = ldc,
                    .pa = a,
                    .pb = b,
                    .pc = c,
                    .pd = c},
                   at, bt, ct, kCompute32, beta),
             h);
}

#define FORETRACE_GEMM(letter, type)                                                               \
  FORETRACE_EXPORTED int cublas##letter##gemm_v2(                                                  \
      void* h, int ta, int tb, int m, int n, int k, const void*, const void* a, int lda,           \
      const void* b, int ldb, const void* beta, void* c, int ldc) {                                \
    return say(plain({.function = "cublas" #letter "gemm",                                         \
                      .m = m,                                                                      \
                      .n = n,                                                                      \
                      .k = k,                                                                      \
                      .transpose_a = ta != 0,                                                      \
                      .transpose_b = tb != 0,                                                      \
                      .lda = lda,                                                                  \
                      .ldb = ldb,                                                                  \
                      .ldd = ldc,                                                                  \
                      .pa = a,                                                                     \
                      .pb = b,                                                                     \
                      .pc = c,                                                                     \
                      .pd = c},                                                                    \
                     h, type, beta),                                                               \
               h);                                                                                 \
  }                                                                                                \
  FORETRACE_EXPORTED int cublas##letter##gemmStridedBatched(                                       \
      void* h, int ta, int tb, int m, int n, int k, const void*, const void* a, int lda,           \
      long long, const void* b, int ldb, long long, const void* beta, void* c, int ldc, long long, \
      int batch) {                                                                                 \
    return say(plain({.function = "cublas" #letter "gemmStridedBatched",                           \
                      .m = m,                                                                      \
                      .n = n,                                                                      \
                      .k = k,                                                                      \
                      .batch = batch,                                                              \
                      .transpose_a = ta != 0,                                                      \
                      .transpose_b = tb != 0,                                                      \
                      .lda = lda,                                                                  \
                      .ldb = ldb,                                                                  \
                      .ldd = ldc,                                                                  \
                      .pa = a,                                                                     \
                      .pb = b,                                                                     \
                      .pc = c,                                                                     \
                      .pd = c},                                                                    \
                     h, type, beta),                                                               \
               h);                                                                                 \
  }                                                                                                \
  FORETRACE_EXPORTED int cublas##letter##gemmBatched(                                              \
      void* h, int ta, int tb, int m, int n, int k, const void*, const void* const*, int lda,      \
      const void* const*, int ldb, const void* beta, void* const*, int ldc, int batch) {           \
    return say(plain({.function = "cublas" #letter "gemmBatched",                                  \
                      .m = m,                                                                      \
                      .n = n,                                                                      \
                      .k = k,                                                                      \
                      .batch = batch,                                                              \
                      .transpose_a = ta != 0,                                                      \
                      .transpose_b = tb != 0,                                                      \
                      .lda = lda,                                                                  \
                      .ldb = ldb,                                                                  \
                      .ldd = ldc,                                                                  \
                      .pa = nullptr,                                                               \
                      .pb = nullptr,                                                               \
                      .pc = nullptr,                                                               \
                      .pd = nullptr},                                                              \
                     h, type, beta),                                                               \
               h);                                                                                 \
  }
FORETRACE_GEMM(S, "f32")
FORETRACE_GEMM(D, "f64")
FORETRACE_GEMM(C, "c64")
FORETRACE_GEMM(Z, "c128")
