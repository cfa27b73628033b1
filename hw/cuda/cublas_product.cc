#include "hw/cuda/cublas_product.h"

namespace foretrace::hw {

cublasStatus_t multiply(cublasHandle_t handle, const CublasProduct& product,
                        const CublasTypes& types, const void* a, const void* b, void* c) {
  const float one = 1;
  const auto beta = static_cast<float>(product.beta);
  const double one_double = 1;
  const double beta_double = product.beta;
  const bool is_double = types.scale == CUDA_R_64F;
  const std::int32_t one_integer = 1;
  const std::int32_t beta_integer = product.beta;
  const bool is_integer = types.scale == CUDA_R_32I;
  const void* scale_ab = is_double    ? static_cast<const void*>(&one_double)
                         : is_integer ? static_cast<const void*>(&one_integer)
                                      : &one;
  const void* scale_c = is_double    ? static_cast<const void*>(&beta_double)
                        : is_integer ? static_cast<const void*>(&beta_integer)
                                     : &beta;
  const auto m = static_cast<int>(product.m);
  const auto n = static_cast<int>(product.n);
  const auto k = static_cast<int>(product.k);
  const cublasOperation_t op_a = product.transposes_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t op_b = product.transposes_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const int lda = product.transposes_a ? k : m;
  const int ldb = product.transposes_b ? n : k;
  if (product.batch == 1) {
    return cublasGemmEx(handle, op_a, op_b, m, n, k, scale_ab, a, types.operand, lda, b,
                        types.operand, ldb, scale_c, c, types.result, m, types.compute,
                        CUBLAS_GEMM_DEFAULT);
  }
  return cublasGemmStridedBatchedEx(
      handle, op_a, op_b, m, n, k, scale_ab, a, types.operand, lda, product.m * product.k, b,
      types.operand, ldb, product.k * product.n, scale_c, c, types.result, m, product.m * product.n,
      static_cast<int>(product.batch), types.compute, CUBLAS_GEMM_DEFAULT);
}

}  // namespace foretrace::hw
