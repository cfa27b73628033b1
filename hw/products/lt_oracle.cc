// What cuBLASLt's heuristic says of a product.
#include <cublasLt.h>
#include <fmt/format.h>

#include <cstdint>

#include "hw/products/product_call.h"
#include "hw/products/shape_error.h"

namespace foretrace::hw {
namespace {

/// The descriptors of one question, freed in any case.
struct Question {
  cublasLtMatmulDesc_t product{};
  cublasLtMatrixLayout_t a{}, b{}, c{};
  cublasLtMatmulPreference_t preference{};

  Question() = default;
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;
  ~Question() {
    if (preference != nullptr) cublasLtMatmulPreferenceDestroy(preference);
    for (cublasLtMatrixLayout_t layout : {a, b, c}) {
      if (layout != nullptr) cublasLtMatrixLayoutDestroy(layout);
    }
    if (product != nullptr) cublasLtMatmulDescDestroy(product);
  }
};

cublasStatus_t layout_of(cublasLtMatrixLayout_t& layout, cudaDataType_t type, std::int64_t rows,
                         std::int64_t columns, std::int64_t batch) {
  cublasStatus_t status = cublasLtMatrixLayoutCreate(
      &layout, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns), rows);
  if (status != CUBLAS_STATUS_SUCCESS || batch == 1) return status;
  const auto count = static_cast<std::int32_t>(batch);
  const std::int64_t stride = rows * columns;
  status = cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                            sizeof count);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  return cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                          &stride, sizeof stride);
}

cublasStatus_t describe(const Shape& shape, Question& question) {
  const CublasTypes types = cublas_types(shape);
  const auto transpose = [&](cublasLtMatmulDescAttributes_t which, bool transposed) {
    const std::int32_t op = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    return cublasLtMatmulDescSetAttribute(question.product, which, &op, sizeof op);
  };
  const auto limit_workspace = [&] {
    const std::uint64_t bytes = kProductWorkspaceBytes;
    return cublasLtMatmulPreferenceSetAttribute(
        question.preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes);
  };
  cublasStatus_t status = cublasLtMatmulDescCreate(&question.product, types.compute, types.scale);
  const auto then = [&status](auto&& step) {
    if (status == CUBLAS_STATUS_SUCCESS) status = step();
  };
  then([&] { return transpose(CUBLASLT_MATMUL_DESC_TRANSA, shape.transa); });
  then([&] { return transpose(CUBLASLT_MATMUL_DESC_TRANSB, shape.transb); });
  then([&] {
    return layout_of(question.a, types.operand, shape.transa ? shape.k : shape.m,
                     shape.transa ? shape.m : shape.k, shape.batch);
  });
  then([&] {
    return layout_of(question.b, types.operand, shape.transb ? shape.n : shape.k,
                     shape.transb ? shape.k : shape.n, shape.batch);
  });
  then([&] { return layout_of(question.c, types.result, shape.m, shape.n, shape.batch); });
  then([&] { return cublasLtMatmulPreferenceCreate(&question.preference); });
  then(limit_workspace);
  return status;
}

/// An id of the algorithm; the ids are 32 or 16 bits wide (cublasLt.h). -1: not to be had.
template <class Id>
int config(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t which) {
  Id value{};
  std::size_t written = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoConfigGetAttribute(&algorithm, which, &value, sizeof value, &written);
  return status == CUBLAS_STATUS_SUCCESS && written == sizeof value ? static_cast<int>(value) : -1;
}

}  // namespace

LtOracle::LtOracle() {
  cublasLtHandle_t handle = nullptr;
  const cublasStatus_t status = cublasLtCreate(&handle);
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw ShapeError{fmt::format("cublasLtCreate: {}", cublasLtGetStatusString(status))};
  }
  handle_ = handle;
}

LtOracle::~LtOracle() { cublasLtDestroy(static_cast<cublasLtHandle_t>(handle_)); }

void LtOracle::ask(const Shape& shape, ProductMeasurement& row) const {
  row.choice.reset();
  Question question;
  cublasStatus_t status = describe(shape, question);
  cublasLtMatmulHeuristicResult_t result{};
  int answers = 0;
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = cublasLtMatmulAlgoGetHeuristic(static_cast<cublasLtHandle_t>(handle_),
                                            question.product, question.a, question.b, question.c,
                                            question.c, question.preference, 1, &result, &answers);
  }
  if (status == CUBLAS_STATUS_SUCCESS && answers > 0) status = result.state;
  row.choice_status = cublasLtGetStatusName(status);
  if (status != CUBLAS_STATUS_SUCCESS || answers < 1) return;
  const cublasLtMatmulAlgo_t& algorithm = result.algo;
  LtChoice choice;
  choice.algorithm = config<std::int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_ID);
  choice.tile = config<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID);
  choice.stages = config<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID);
  choice.cluster_shape = config<std::uint16_t>(algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID);
  choice.inner_shape = config<std::uint16_t>(algorithm, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID);
  choice.split_k = config<std::int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
  choice.reduction_scheme = config<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
  choice.swizzle = config<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING);
  choice.custom_option = config<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION);
  choice.waves = static_cast<double>(result.wavesCount);
  choice.workspace_bytes = result.workspaceSize;
  row.choice = choice;
}

}  // namespace foretrace::hw
