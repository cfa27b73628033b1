// Matrix products through cuBLAS.
#pragma once

#include <cublas_v2.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "hw/cuda/cublas_product.h"
#include "hw/cuda/stream.h"
#include "scenarios/program/program.h"

namespace foretrace::hw {

/// One cuBLAS handle with its own workspace, bound to one stream for good: cublasSetStream would
/// reset the workspace, and two streams must not share one.
class GemmHandle {
 public:
  explicit GemmHandle(const Stream& stream);
  ~GemmHandle();
  GemmHandle(const GemmHandle&) = delete;
  GemmHandle& operator=(const GemmHandle&) = delete;

  /// Float32 without TF32, as PyTorch's default.
  void multiply(const CublasProduct& product, DataType type, const void* a, const void* b,
                void* c) const;

 private:
  const Stream* stream_;
  cublasHandle_t handle_{};
  void* workspace_{};
};

/// The handles of one process: per host thread and stream, made at first use.
class GemmHandles {
 public:
  const GemmHandle& at(std::uint32_t thread, StreamId id, const Stream& stream);

 private:
  std::mutex mutex_;
  std::map<std::pair<std::uint32_t, StreamId>, std::unique_ptr<GemmHandle>> handles_;
};

/// Throws UsageError for an element type that gemm does not offer.
void require_gemm_type(DataType type);

}  // namespace foretrace::hw
