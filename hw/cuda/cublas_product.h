// The one call of cuBLAS that multiplies, for scenarios and for measured tables of products.
#pragma once

#include <cublas_v2.h>

#include <cstdint>

namespace foretrace::hw {

/// c (m x n) = a (m x k) * b (k x n) + beta * c, column-major, packed: a lies in memory as k x m
/// where it is transposed, b as n x k, and the matrices of a batch follow each other.
struct CublasProduct {
  std::int64_t m = 1, n = 1, k = 1, batch = 1;
  bool transposes_a = false, transposes_b = false;
  double beta = 0;
  cudaDataType_t operand = CUDA_R_32F, result = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
};

/// cublasGemmEx, for a batch cublasGemmStridedBatchedEx. Each size fits into an int.
cublasStatus_t multiply(cublasHandle_t handle, const CublasProduct& product, const void* a,
                        const void* b, void* c);

}  // namespace foretrace::hw
