#include "hw/cuda/gemm.h"

#include <stdexcept>
#include <string>

#include "hw/cuda/cuda_check.h"
#include "hw/guard/call_site.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/program/product_type.h"

namespace foretrace::hw {
namespace {

void cublas_check(cublasStatus_t status, CallSite where = CallSite::current()) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error{where.text() + ": cuBLAS: " + cublasGetStatusString(status)};
}

/// cuBLAS recommends 32 MiB on Hopper (cublasSetWorkspace); older GPUs need less.
constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

CublasTypes types_of(const GemmTypes& types) {
  switch (types.operand) {
    case DataType::Float16:
      return {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case DataType::BFloat16:
      return {CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case DataType::Float32:
      return {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
              types.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F};
    case DataType::Float64:
      return {CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
    case DataType::Int8:
      return {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I};
    default:
      break;
  }
  throw UsageError{"gemm takes float16, bfloat16, float32, float64, int8 or float8 here"};
}

NarrowProduct::Types narrow_types_of(const GemmTypes& types) {
  return {.a = types.operand == DataType::Float8E5M2 ? CUDA_R_8F_E5M2 : CUDA_R_8F_E4M3,
          .b = CUDA_R_8F_E4M3,
          .result = types.result == DataType::Float32   ? CUDA_R_32F
                    : types.result == DataType::Float16 ? CUDA_R_16F
                                                        : CUDA_R_16BF};
}

bool is_float8(DataType type) {
  return type == DataType::Float8E4M3 || type == DataType::Float8E5M2;
}

}  // namespace

GemmTypes GemmTypes::of(const Gemm& op) {
  return {op.type, op.result.value_or(result_of(op.type)), op.tf32};
}

void require_gemm_type(const Gemm& op) {
  if (!is_float8(op.type)) return static_cast<void>(types_of(GemmTypes::of(op)));
  if (op.scales == Scales::Tensor) return;
  throw UsageError{"gemm has float8 with `scales: tensor` here, and no others"};
}

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

void GemmHandle::multiply(const CublasProduct& product, const GemmTypes& types, const void* a,
                          const void* b, void* c) const {
  const cudaStream_t stream = stream_->use();
  if (is_float8(types.operand)) {
    return cublas_check(narrow(product, types).multiply(stream, a, b, c));
  }
  cublas_check(foretrace::hw::multiply(handle_, product, types_of(types), a, b, c));
}

const NarrowProduct& GemmHandle::narrow(const CublasProduct& product,
                                        const GemmTypes& types) const {
  auto& made = narrow_[{product, types}];
  if (!made) {
    // A cublasHandle_t serves as a cublasLtHandle_t (cuBLAS's documentation of cublasLtHandle_t).
    made = std::make_unique<NarrowProduct>(reinterpret_cast<cublasLtHandle_t>(handle_), product,
                                           narrow_types_of(types),
                                           NarrowProduct::Workspace{workspace_, kWorkspaceBytes});
  }
  if (made->status() == CUBLAS_STATUS_NOT_SUPPORTED) {
    throw UsageError{
        "cuBLAS has no float8 product of this layout on this GPU: before compute capability 10.0 it "
        "takes transpose_a: true, transpose_b: false, and m, n, k in multiples of 16"};
  }
  cublas_check(made->status());
  return *made;
}

const GemmHandle& GemmHandles::at(std::uint32_t thread, StreamId id, const Stream& stream) {
  const std::scoped_lock lock{mutex_};
  auto& handle = handles_[{thread, id}];
  if (!handle) handle = std::make_unique<GemmHandle>(stream);
  return *handle;
}

}  // namespace foretrace::hw
