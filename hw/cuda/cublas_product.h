// The one call of cuBLAS that multiplies, for scenarios and for measured tables of products.
#pragma once

#include <cublas_v2.h>

#include <compare>
#include <cstdint>

namespace foretrace::hw {

/// c (m x n) = a (m x k) * b (k x n) + beta * c, column-major, packed: a lies in memory as k x m
/// where it is transposed, b as n x k, and the matrices of a batch follow each other.
struct CublasProduct {
  std::int64_t m = 1, n = 1, k = 1;
  bool transposes_a = false, transposes_b = false;
  std::int64_t batch = 1;
  int beta = 0;  ///< 0 or 1
  friend auto operator<=>(const CublasProduct&, const CublasProduct&) = default;
};

/// Of operands, of results, of the factors before them, and of the sums.
struct CublasTypes {
  cudaDataType_t operand, result, scale;
  cublasComputeType_t compute;
};

/// cublasGemmEx, for a batch cublasGemmStridedBatchedEx. Each size fits into an int.
cublasStatus_t multiply(cublasHandle_t handle, const CublasProduct& product,
                        const CublasTypes& types, const void* a, const void* b, void* c);

}  // namespace foretrace::hw
