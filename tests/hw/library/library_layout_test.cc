#include "hw/library/library_layout.h"

#include <gmock/gmock.h>

namespace foretrace::hw {
namespace {

using enum KernelKind;

bool is_attention(KernelKind kind) { return kind == AttentionForward || kind == AttentionBackward; }

TEST(LibraryLayout, OfEveryKindHasRoomForItsOperandsOneBehindTheOther) {
  for (std::size_t k = 0; k < kKernelKinds; ++k) {
    const auto kind = static_cast<KernelKind>(k);
    if (is_attention(kind)) continue;
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{6144}, std::size_t{100'000'001}}) {
      SCOPED_TRACE(std::string{kernel_kind_name(kind)} + " " + std::to_string(bytes));
      const LibraryLayout layout = layout_of(kind, bytes);
      EXPECT_GE(layout.rows, 1U);
      EXPECT_EQ(layout.columns % 8, 0U) << "a thread takes eight elements";
      EXPECT_GE(layout.columns, kind == Strided || kind == Concatenate ? 16U : 8U);
      for (std::size_t i = 0; i + 1 < layout.offsets.size(); ++i) {
        EXPECT_LE(layout.offsets.at(i), layout.offsets.at(i + 1));
        EXPECT_EQ(layout.offsets.at(i) % 256, 0U);
      }
      EXPECT_GE(layout.scratch_bytes, layout.offsets.back());
    }
  }
}

TEST(LibraryLayout, MovesTheBytesThatTheScenarioSays) {
  constexpr std::size_t kBytes = 123'456'789;
  const auto elements = [](KernelKind kind) {
    const LibraryLayout layout = layout_of(kind, kBytes);
    return static_cast<double>(layout.rows * layout.columns);
  };
  EXPECT_NEAR(elements(Pointwise) * 6, kBytes, 30'000);  // two read, one written
  EXPECT_NEAR(elements(Narrow) * 6, kBytes, 30'000);     // float32 read, bfloat16 written
  EXPECT_NEAR(elements(Mixed) * 10, kBytes, 50'000);     // a float32 read and written
  EXPECT_NEAR(elements(Strided) * 3, kBytes, 1'000);     // half of three rows
  EXPECT_NEAR(elements(RmsNormBackward) * 6, kBytes, 30'000);
  EXPECT_NEAR(elements(Softmax) * 8, kBytes, 300'000);
  EXPECT_NEAR(elements(Optimizer) * 28, kBytes, 120'000);
  EXPECT_EQ(layout_of(Softmax, kBytes).columns, 32000U);
}

TEST(LibraryLayout, AttentionHasTheShapeThatItsFlopsAndBytesSay) {
  constexpr double kHeads = 32, kTokens = 4096, kWidth = 128;
  const double forward = 2 * kHeads * kTokens * (kTokens + 192) * kWidth;
  const AttentionShape there =
      attention_shape(AttentionForward, forward, 8 * kHeads * kTokens * kWidth, kWidth);
  EXPECT_EQ(there.sequence, 4096U);
  EXPECT_EQ(there.heads, 32U);
  const double backward = 5 * kHeads * kTokens * (kTokens + 256) * kWidth;
  const AttentionShape back =
      attention_shape(AttentionBackward, backward, 16 * kHeads * kTokens * kWidth, kWidth);
  EXPECT_EQ(back.sequence, 4096U);
  EXPECT_EQ(back.heads, 32U);
  const AttentionShape least = attention_shape(AttentionForward, 1, 0, 0);
  EXPECT_EQ(least.sequence, 8U);
  EXPECT_EQ(least.heads, 1U);
}

}  // namespace
}  // namespace foretrace::hw
