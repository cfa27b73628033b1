#include "hw/cuda/gemm.h"

#include <stdexcept>
#include <string>

#include "hw/cuda/cuda_check.h"
#include "hw/guard/call_site.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::hw {
namespace {

void cublas_check(cublasStatus_t status, CallSite where = CallSite::current()) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error{where.text() + ": cuBLAS: " + cublasGetStatusString(status)};
}

/// cuBLAS recommends 32 MiB on Hopper (cublasSetWorkspace); older GPUs need less.
constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

CublasTypes types_of(DataType type) {
  switch (type) {
    case DataType::Float16:
      return {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case DataType::BFloat16:
      return {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case DataType::Float32:
      return {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case DataType::Float64:
      return {CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
    case DataType::Int8:
    case DataType::Int32:
    case DataType::Int64:
      break;
  }
  throw UsageError{"gemm takes float16, bfloat16, float32 or float64"};
}

}  // namespace

void require_gemm_type(DataType type) { static_cast<void>(types_of(type)); }

GemmHandle::GemmHandle(const Stream& stream) : stream_{&stream} {
  const cudaStream_t handle = stream.use();
  cublas_check(cublasCreate(&handle_));
  cublas_check(cublasSetStream(handle_, handle));
  // Default math with COMPUTE_32F keeps float32's full mantissa: TF32 is opt-in.
  cublas_check(cublasSetMathMode(handle_, CUBLAS_DEFAULT_MATH));
  cuda_check(cudaMalloc(&workspace_, kWorkspaceBytes));
  cublas_check(cublasSetWorkspace(handle_, workspace_, kWorkspaceBytes));
}

GemmHandle::~GemmHandle() {
  if (handle_ != nullptr) cublasDestroy(handle_);
  if (workspace_ != nullptr) cuda_ignore(cudaFree(workspace_));
}

void GemmHandle::multiply(const CublasProduct& product, DataType type, const void* a, const void* b,
                          void* c) const {
  stream_->use();
  cublas_check(foretrace::hw::multiply(handle_, product, types_of(type), a, b, c));
}

const GemmHandle& GemmHandles::at(std::uint32_t thread, StreamId id, const Stream& stream) {
  const std::scoped_lock lock{mutex_};
  auto& handle = handles_[{thread, id}];
  if (!handle) handle = std::make_unique<GemmHandle>(stream);
  return *handle;
}

}  // namespace foretrace::hw
