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
  const CublasProduct product{.m = shape.m,
                              .n = shape.n,
                              .k = shape.k,
                              .transposes_a = shape.transa,
                              .transposes_b = shape.transb,
                              .batch = shape.batch,
                              .beta = shape.beta};
  cublas_check(foretrace::hw::multiply(handle_, product, cublas_types(shape), a, b, c),
               shape.batch == 1 ? "cublasGemmEx" : "cublasGemmStridedBatchedEx");
}

std::string ProductCublas::version() {
  int parts[3] = {};
  cublas_check(cublasGetProperty(MAJOR_VERSION, &parts[0]), "cublasGetProperty");
  cublas_check(cublasGetProperty(MINOR_VERSION, &parts[1]), "cublasGetProperty");
  cublas_check(cublasGetProperty(PATCH_LEVEL, &parts[2]), "cublasGetProperty");
  return fmt::format("{}.{}.{}", parts[0], parts[1], parts[2]);
}

}  // namespace foretrace::hw
