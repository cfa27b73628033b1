// Library kernels on a real GPU: what they compute, and that every kind runs.
#include <cuda_bf16.h>
#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "hw/cuda/cuda_check.h"
#include "hw/cuda/device_guard.h"
#include "hw/library/growing_memory.h"
#include "hw/library/library_kernels.h"
#include "tests/hw/gpu/gpu.h"

namespace foretrace::hw {
namespace {

using enum KernelKind;

class LibraryOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    FORETRACE_NEEDS_GPUS(1);
    use_device(0);
  }

  void run(KernelKind kind, std::size_t bytes) {
    layout_ = layout_of(kind, bytes);
    scratch_ = static_cast<char*>(memory_.at(0, layout_.scratch_bytes));
    before_ = read_all();
    cuda_check(launch_library_kernel(cudaStreamLegacy, kind, layout_, scratch_));
    cuda_check(cudaDeviceSynchronize());
    after_ = read_all();
  }
  std::vector<char> read_all() const {
    std::vector<char> bytes(layout_.scratch_bytes);
    cuda_check(cudaMemcpy(bytes.data(), scratch_, bytes.size(), cudaMemcpyDeviceToHost));
    return bytes;
  }
  float half(const std::vector<char>& bytes, std::size_t operand, std::size_t at) const {
    const auto* first =
        reinterpret_cast<const __nv_bfloat16*>(bytes.data() + layout_.offsets.at(operand));
    return __bfloat162float(first[at]);
  }
  float single(const std::vector<char>& bytes, std::size_t operand, std::size_t at) const {
    return reinterpret_cast<const float*>(bytes.data() + layout_.offsets.at(operand))[at];
  }

  GrowingMemory memory_;
  LibraryLayout layout_;
  char* scratch_ = nullptr;
  std::vector<char> before_, after_;
};

TEST_F(LibraryOnGpu, PointwiseAddsTwoOperands) {
  run(Pointwise, 600'000);
  for (std::size_t i = 0; i < layout_.rows * layout_.columns; i += 37) {
    EXPECT_NEAR(half(after_, 2, i), half(before_, 0, i) + half(before_, 1, i), 0.03) << i;
  }
}

TEST_F(LibraryOnGpu, ANormGivesRowsOfMeanZeroAndDeviationOne) {
  run(LayerNorm, 4 * 3 * 4096);
  for (std::size_t row = 0; row < layout_.rows; ++row) {
    double sum = 0, squares = 0;
    for (std::size_t column = 0; column < layout_.columns; ++column) {
      const double value = half(after_, 1, row * layout_.columns + column);
      sum += value;
      squares += value * value;
    }
    EXPECT_NEAR(sum / 4096, 0, 0.01);
    EXPECT_NEAR(squares / 4096, 1, 0.02);
  }
}

TEST_F(LibraryOnGpu, TheSumOfAColumnIsOverAllRows) {
  cuda_check(cudaDeviceSynchronize());
  run(ColumnSum, 2 * 100 * 4096);
  ASSERT_EQ(layout_.rows, 100U);
  for (const std::size_t column : {std::size_t{0}, std::size_t{2049}, std::size_t{4095}}) {
    double sum = single(before_, 3, column);
    for (std::size_t row = 0; row < layout_.rows; ++row)
      sum += half(before_, 0, row * 4096 + column);
    EXPECT_NEAR(single(after_, 3, column), sum, 0.01 * (1 + std::abs(sum)));
  }
}

TEST_F(LibraryOnGpu, ScoresBecomeProbabilities) {
  constexpr std::size_t kRows = 5, kColumns = 1000;
  auto* scores = static_cast<char*>(memory_.at(0, kRows * kColumns * 2));
  cuda_check(launch_score_softmax(cudaStreamLegacy, scores, kRows, kColumns));
  layout_ = {kRows, kColumns, {}, kRows * kColumns * 2};
  scratch_ = scores;
  const std::vector<char> values = read_all();
  for (std::size_t row = 0; row < kRows; ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < kColumns; ++i) sum += half(values, 0, row * kColumns + i);
    EXPECT_NEAR(sum, 1, 0.02);
  }
}

TEST_F(LibraryOnGpu, EveryKindRunsAtOddSizes) {
  for (std::size_t k = 0; k < kKernelKinds; ++k) {
    const auto kind = static_cast<KernelKind>(k);
    if (kind == AttentionForward || kind == AttentionBackward) continue;
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{77'777}, std::size_t{50'000'003}}) {
      SCOPED_TRACE(std::string{kernel_kind_name(kind)} + " " + std::to_string(bytes));
      EXPECT_NO_THROW(run(kind, bytes));
    }
  }
}

}  // namespace
}  // namespace foretrace::hw
