// Matrix products through cuBLAS.
#pragma once

#include <cublas_v2.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "hw/cuda/cublas_product.h"
#include "hw/cuda/narrow_product.h"
#include "hw/cuda/stream.h"
#include "scenarios/program/program.h"

namespace foretrace::hw {

/// What is multiplied, and what c is.
struct GemmTypes {
  DataType operand;
  DataType result;
  bool tf32 = false;
  /// The same of operands and result.
  static GemmTypes plain(DataType type) { return {type, type}; }
  static GemmTypes of(const Gemm& op);
  friend auto operator<=>(const GemmTypes&, const GemmTypes&) = default;
};

/// One cuBLAS handle with its own workspace, bound to one stream for good: cublasSetStream would
/// reset the workspace, and two streams must not share one.
class GemmHandle {
 public:
  explicit GemmHandle(const Stream& stream);
  ~GemmHandle();
  GemmHandle(const GemmHandle&) = delete;
  GemmHandle& operator=(const GemmHandle&) = delete;

  /// Float32 without TF32, as PyTorch's default, unless it is asked for. Throws UsageError for a product that cuBLAS has not.
  void multiply(const CublasProduct& product, const GemmTypes& types, const void* a, const void* b,
                void* c) const;

 private:
  const NarrowProduct& narrow(const CublasProduct& product, const GemmTypes& types) const;

  const Stream* stream_;
  cublasHandle_t handle_{};
  void* workspace_{};
  /// Of float8, made at first use; a thread has handles of its own.
  mutable std::map<std::pair<CublasProduct, GemmTypes>, std::unique_ptr<NarrowProduct>> narrow_;
};

/// The handles of one process: per host thread and stream, made at first use.
class GemmHandles {
 public:
  const GemmHandle& at(std::uint32_t thread, StreamId id, const Stream& stream);

 private:
  std::mutex mutex_;
  std::map<std::pair<std::uint32_t, StreamId>, std::unique_ptr<GemmHandle>> handles_;
};

/// Throws UsageError for types and scales that the harness does not multiply.
void require_gemm_type(const Gemm& op);

}  // namespace foretrace::hw
