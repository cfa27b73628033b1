#include "hw/products/product_call.h"

#include <fmt/format.h>

#include "hw/cuda/cuda_check.h"
#include "hw/products/shape_error.h"

namespace foretrace::hw {
namespace {

void cublas_check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw ShapeError{fmt::format("{}: {}", what, cublasGetStatusString(status))};
}

cudaDataType_t data_type(ProductType type) {
  switch (type) {
    case ProductType::Float16:
      return CUDA_R_16F;
    case ProductType::BFloat16:
      return CUDA_R_16BF;
    case ProductType::Float32:
    case ProductType::Tf32:
      return CUDA_R_32F;
    case ProductType::Float64:
      return CUDA_R_64F;
  }
  return CUDA_R_64F;
}

}  // namespace

CublasTypes cublas_types(const Shape& shape) {
  CublasTypes types{data_type(shape.type), data_type(shape.c_type), CUDA_R_32F, CUBLAS_COMPUTE_32F};
  if (shape.type == ProductType::Tf32) types.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  if (shape.type == ProductType::Float64) {
    types.scale = CUDA_R_64F;
    types.compute = CUBLAS_COMPUTE_64F;
  }
  return types;
}

ProductCublas::ProductCublas(cudaStream_t stream) {
  cublas_check(cublasCreate(&handle_), "cublasCreate");
  cublas_check(cublasSetStream(handle_, stream), "cublasSetStream");
  cublas_check(cublasSetMathMode(handle_, CUBLAS_DEFAULT_MATH), "cublasSetMathMode");
  cuda_check(cudaMalloc(&workspace_, kProductWorkspaceBytes));
  cublas_check(cublasSetWorkspace(handle_, workspace_, kProductWorkspaceBytes),
               "cublasSetWorkspace");
}

ProductCublas::~ProductCublas() {
  if (handle_ != nullptr) cublasDestroy(handle_);
  if (workspace_ != nullptr) cuda_ignore(cudaFree(workspace_));
}

void ProductCublas::multiply(const Shape& shape, const void* a, const void* b, void* c) const {
  const CublasTypes types = cublas_types(shape);
  const float one = 1;
  const auto beta = static_cast<float>(shape.beta);
  const double one_double = 1;
  const double beta_double = shape.beta;
  const bool is_double = types.scale == CUDA_R_64F;
  const void* scale_ab = is_double ? static_cast<const void*>(&one_double) : &one;
  const void* scale_c = is_double ? static_cast<const void*>(&beta_double) : &beta;
  const auto m = static_cast<int>(shape.m);
  const auto n = static_cast<int>(shape.n);
  const auto k = static_cast<int>(shape.k);
  const cublasOperation_t op_a = shape.transa ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t op_b = shape.transb ? CUBLAS_OP_T : CUBLAS_OP_N;
  const int lda = shape.transa ? k : m;
  const int ldb = shape.transb ? n : k;
  if (shape.batch == 1) {
    return cublas_check(cublasGemmEx(handle_, op_a, op_b, m, n, k, scale_ab, a, types.operand, lda,
                                     b, types.operand, ldb, scale_c, c, types.result, m,
                                     types.compute, CUBLAS_GEMM_DEFAULT),
                        "cublasGemmEx");
  }
  cublas_check(
      cublasGemmStridedBatchedEx(handle_, op_a, op_b, m, n, k, scale_ab, a, types.operand, lda,
                                 shape.m * shape.k, b, types.operand, ldb, shape.k * shape.n,
                                 scale_c, c, types.result, m, shape.m * shape.n,
                                 static_cast<int>(shape.batch), types.compute, CUBLAS_GEMM_DEFAULT),
      "cublasGemmStridedBatchedEx");
}

std::string ProductCublas::version() {
  int parts[3] = {};
  cublas_check(cublasGetProperty(MAJOR_VERSION, &parts[0]), "cublasGetProperty");
  cublas_check(cublasGetProperty(MINOR_VERSION, &parts[1]), "cublasGetProperty");
  cublas_check(cublasGetProperty(PATCH_LEVEL, &parts[2]), "cublasGetProperty");
  return fmt::format("{}.{}.{}", parts[0], parts[1], parts[2]);
}

}  // namespace foretrace::hw
