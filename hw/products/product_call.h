// One product as the harness's gemm makes it, with transposes, batches and sums into c beside.
#pragma once

#include <cublas_v2.h>

#include <cstddef>
#include <string>

#include "hw/cuda/cublas_product.h"
#include "hw/products/product_table.h"
#include "hw/products/shapes.h"

namespace foretrace::hw {

/// hw/cuda/gemm.cc's: 32 MiB, as cublasSetWorkspace recommends on Hopper.
inline constexpr std::size_t kProductWorkspaceBytes = std::size_t{32} << 20;

/// cuBLAS for one stream, set up as GemmHandle sets it up: default math, a workspace of its own.
class ProductCublas {
 public:
  explicit ProductCublas(cudaStream_t stream);
  ~ProductCublas();
  ProductCublas(const ProductCublas&) = delete;
  ProductCublas& operator=(const ProductCublas&) = delete;

  /// cublasGemmEx, for a batch cublasGemmStridedBatchedEx. Throws ShapeError.
  void multiply(const Shape& shape, const void* a, const void* b, void* c) const;

  /// The version, as in "13.0.2".
  static std::string version();

 private:
  cublasHandle_t handle_{};
  void* workspace_{};
};

/// Asks cublasLtMatmulAlgoGetHeuristic for one answer, with the same workspace, operands aligned to
/// 256 bytes. Fills `choice` and `choice_status` of the measurement; never throws for a missing
/// answer.
class LtOracle {
 public:
  LtOracle();
  ~LtOracle();
  LtOracle(const LtOracle&) = delete;
  LtOracle& operator=(const LtOracle&) = delete;

  void ask(const Shape& shape, ProductMeasurement& row) const;

 private:
  void* handle_{};  // cublasLtHandle_t
};

CublasTypes cublas_types(const Shape& shape);

}  // namespace foretrace::hw
