// cuBLASLt: descriptions of products, and products. The heuristic always has one algorithm.
#include <cstdint>
#include <cstring>

#include "hw/emulated/blas/product.h"
#include "hw/emulated/blas/types.h"
#include "hw/emulated/exported.h"
#include "hw/emulated/record.h"

using namespace foretrace::emulated;

namespace {

// cuBLASLt's objects may lie in memory of the caller; PyTorch has them made.
struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t leading;
  int batch;
};
struct Description {
  int compute = 0, scale = 0, transpose_a = 0, transpose_b = 0, epilogue = 1, fast_accumulation = 0,
      a_scale_mode = 0, b_scale_mode = 0;
  const void *a_scale = nullptr, *b_scale = nullptr;
};
struct Heuristic {  // cublasLtMatmulHeuristicResult_t
  uint64_t algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

template <typename T>
void read(T* to, const void* from, size_t bytes) {
  std::memcpy(to, from, bytes < sizeof(T) ? bytes : sizeof(T));
}

}  // namespace

FORETRACE_EXPORTED int cublasLtCreate(void** handle) {
  *handle = new int;
  return 0;
}
FORETRACE_EXPORTED int cublasLtDestroy(void* handle) {
  delete static_cast<int*>(handle);
  return 0;
}
FORETRACE_EXPORTED int cublasLtMatmulDescCreate(void** description, int compute, int scale) {
  *description = new Description{.compute = compute, .scale = scale};
  return 0;
}
FORETRACE_EXPORTED int cublasLtMatmulDescDestroy(void* description) {
  delete static_cast<Description*>(description);
  return 0;
}
FORETRACE_EXPORTED int cublasLtMatmulDescSetAttribute(void* description, int attribute,
                                                      const void* value, size_t bytes) {
  auto& d = *static_cast<Description*>(description);
  switch (attribute) {  // cublasLtMatmulDescAttributes_t
    case 0:
      read(&d.compute, value, bytes);
      break;
    case 1:
      read(&d.scale, value, bytes);
      break;
    case 3:
      read(&d.transpose_a, value, bytes);
      break;
    case 4:
      read(&d.transpose_b, value, bytes);
      break;
    case 7:
      read(&d.epilogue, value, bytes);
      break;
    case 17:
      read(&d.a_scale, value, bytes);
      break;
    case 18:
      read(&d.b_scale, value, bytes);
      break;
    case 25:
      read(&d.fast_accumulation, value, 1);
      break;
    case 31:
      read(&d.a_scale_mode, value, bytes);
      break;
    case 32:
      read(&d.b_scale_mode, value, bytes);
      break;
    default:
      break;  // pointers, strides and leading dimensions of the epilogue: no kernel depends on them
  }
  return 0;
}
FORETRACE_EXPORTED int cublasLtMatrixLayoutCreate(void** layout, int type, uint64_t rows,
                                                  uint64_t columns, int64_t leading) {
  *layout = new Layout{type, rows, columns, leading, 1};
  return 0;
}
FORETRACE_EXPORTED int cublasLtMatrixLayoutDestroy(void* layout) {
  delete static_cast<Layout*>(layout);
  return 0;
}
FORETRACE_EXPORTED int cublasLtMatrixLayoutSetAttribute(void* layout, int attribute,
                                                        const void* value, size_t bytes) {
  constexpr int kBatch = 5;  // CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT; the others are strides
  if (attribute == kBatch) read(&static_cast<Layout*>(layout)->batch, value, bytes);
  return 0;
}
FORETRACE_EXPORTED int cublasLtMatmulPreferenceCreate(void** preference) {
  *preference = new uint64_t{0};
  return 0;
}
FORETRACE_EXPORTED int cublasLtMatmulPreferenceDestroy(void* preference) {
  delete static_cast<uint64_t*>(preference);
  return 0;
}
FORETRACE_EXPORTED int cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, size_t) {
  return 0;
}
FORETRACE_EXPORTED int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*,
                                                      void*, int room, Heuristic* results,
                                                      int* found) {
  const LibraryTime time;
  record(time, R"("k":"call","f":"cublasLtMatmulAlgoGetHeuristic")");
  std::memset(static_cast<void*>(results), 0, sizeof *results * static_cast<size_t>(room));
  results[0].waves = 1;
  *found = 1;
  return 0;
}
FORETRACE_EXPORTED int cublasLtMatmul(void*, void* description, const void*, const void* a,
                                      void* a_layout, const void* b, void* b_layout,
                                      const void* beta, const void* c, void* c_layout, void* d,
                                      void* d_layout, const void*, void*, size_t workspace,
                                      void* stream) {
  const auto& what = *static_cast<Description*>(description);
  const auto &la = *static_cast<Layout*>(a_layout), &lb = *static_cast<Layout*>(b_layout),
             &lc = *static_cast<Layout*>(c_layout), &ld = *static_cast<Layout*>(d_layout);
  Product p{.function = "cublasLtMatmul",
            .m = static_cast<int64_t>(ld.rows),
            .n = static_cast<int64_t>(ld.columns),
            .k = static_cast<int64_t>(what.transpose_a ? la.rows : la.columns),
            .batch = ld.batch,
            .transpose_a = what.transpose_a != 0,
            .transpose_b = what.transpose_b != 0,
            .a = type_word(la.type),
            .b = type_word(lb.type),
            .c = type_word(lc.type),
            .d = type_word(ld.type),
            .compute = compute_word(what.compute),
            .scale = type_word(what.scale),
            .epilogue = epilogue_word(what.epilogue),
            .lda = la.leading,
            .ldb = lb.leading,
            .ldd = ld.leading,
            .workspace = workspace,
            .pa = a,
            .pb = b,
            .pc = c,
            .pd = d};
  p.accumulates = nonzero(beta, p.scale);
  if (what.fast_accumulation) p.more += R"(,"fast_acc":true)";
  if (what.a_scale || what.b_scale)
    p.more += format(R"(,"scale_modes":[%d,%d])", what.a_scale_mode, what.b_scale_mode);
  record_product(p, stream);
  return 0;
}
