// Products of float8 through cublasLtMatmul: cublasGemmEx has none.
#pragma once

#include <cublasLt.h>

#include <cstddef>

#include "hw/cuda/cublas_product.h"

namespace foretrace::hw {

/// A product's descriptors and the kernel that cuBLASLt takes first. Scales are one; sums are in float32, with
/// CUBLASLT_MATMUL_DESC_FAST_ACCUM as Transformer Engine's and torchao's forward passes have it.
class NarrowProduct {
 public:
  struct Types {
    cudaDataType_t a, b, result;
  };
  struct Workspace {
    void* data;
    std::size_t bytes;
  };
  /// `status` is what cuBLASLt answered: before Blackwell it multiplies a transposed a by a b that is not, in whole 16 bytes.
  NarrowProduct(cublasLtHandle_t handle, const CublasProduct& product, const Types& types,
                const Workspace& workspace);
  ~NarrowProduct();
  NarrowProduct(const NarrowProduct&) = delete;
  NarrowProduct& operator=(const NarrowProduct&) = delete;

  cublasStatus_t status() const { return status_; }
  cublasStatus_t multiply(cudaStream_t stream, const void* a, const void* b, void* c) const;

 private:
  void describe(const CublasProduct& product, const Types& types);

  cublasLtHandle_t handle_;
  Workspace workspace_;
  float beta_;
  cublasStatus_t status_ = CUBLAS_STATUS_SUCCESS;
  cublasLtMatmulDesc_t operation_{};
  cublasLtMatrixLayout_t a_{}, b_{}, c_{};
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace foretrace::hw
