#include "hw/cuda/narrow_product.h"

#include <cstdint>

namespace foretrace::hw {
namespace {

/// Runs calls one after the other until one fails.
class Calls {
 public:
  explicit Calls(cublasStatus_t& status) : status_{status} {}
  template <class Call>
  Calls& then(Call call) {
    if (status_ == CUBLAS_STATUS_SUCCESS) status_ = call();
    return *this;
  }

 private:
  cublasStatus_t& status_;
};

template <class T>
auto set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t name, const T& value) {
  return [=] { return cublasLtMatmulDescSetAttribute(operation, name, &value, sizeof value); };
}

/// Packed, column-major; the matrices of a batch follow each other.
cublasStatus_t make_layout(cublasLtMatrixLayout_t& layout, cudaDataType_t type, std::int64_t rows,
                           std::int64_t columns, std::int64_t batch) {
  cublasStatus_t status =
      cublasLtMatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(rows),
                                 static_cast<std::uint64_t>(columns), rows);
  const auto count = static_cast<std::int32_t>(batch);
  const std::int64_t stride = rows * columns;
  Calls{status}
      .then([&] {
        return cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                                sizeof count);
      })
      .then([&] {
        return cublasLtMatrixLayoutSetAttribute(
            layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride);
      });
  return status;
}

}  // namespace

NarrowProduct::NarrowProduct(cublasLtHandle_t handle, const CublasProduct& product,
                             const Types& types, const Workspace& workspace)
    : handle_{handle}, workspace_{workspace}, beta_{static_cast<float>(product.beta)} {
  describe(product, types);
  cublasLtMatmulPreference_t preference{};
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  Calls{status_}
      .then([&] { return cublasLtMatmulPreferenceCreate(&preference); })
      .then([&] {
        return cublasLtMatmulPreferenceSetAttribute(
            preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_.bytes,
            sizeof workspace_.bytes);
      })
      .then([&] {
        return cublasLtMatmulAlgoGetHeuristic(handle_, operation_, a_, b_, c_, c_, preference, 1,
                                              &found, &count);
      })
      .then([&] { return count > 0 ? found.state : CUBLAS_STATUS_NOT_SUPPORTED; });
  algorithm_ = found.algo;
  if (preference != nullptr) cublasLtMatmulPreferenceDestroy(preference);
}

void NarrowProduct::describe(const CublasProduct& product, const Types& types) {
  const cublasOperation_t op_a = product.transposes_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t op_b = product.transposes_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const std::int8_t fast = 1;
  Calls calls{status_};
  calls.then([&] { return cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F); });
  calls.then(set(operation_, CUBLASLT_MATMUL_DESC_TRANSA, op_a))
      .then(set(operation_, CUBLASLT_MATMUL_DESC_TRANSB, op_b))
      .then(set(operation_, CUBLASLT_MATMUL_DESC_FAST_ACCUM, fast))
      .then([&] {
        return product.transposes_a ? make_layout(a_, types.a, product.k, product.m, product.batch)
                                    : make_layout(a_, types.a, product.m, product.k, product.batch);
      })
      .then([&] {
        return product.transposes_b ? make_layout(b_, types.b, product.n, product.k, product.batch)
                                    : make_layout(b_, types.b, product.k, product.n, product.batch);
      })
      .then([&] { return make_layout(c_, types.result, product.m, product.n, product.batch); });
}

NarrowProduct::~NarrowProduct() {
  for (cublasLtMatrixLayout_t layout : {a_, b_, c_}) {
    if (layout != nullptr) cublasLtMatrixLayoutDestroy(layout);
  }
  if (operation_ != nullptr) cublasLtMatmulDescDestroy(operation_);
}

cublasStatus_t NarrowProduct::multiply(cudaStream_t stream, const void* a, const void* b,
                                       void* c) const {
  const float one = 1;
  return cublasLtMatmul(handle_, operation_, &one, a, a_, b, b_, &beta_, c, c_, c, c_, &algorithm_,
                        workspace_.data, workspace_.bytes, stream);
}

}  // namespace foretrace::hw
