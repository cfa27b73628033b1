#include "hw/library/library_layout.h"

#include <algorithm>
#include <cmath>

namespace foretrace::hw {
namespace {

constexpr std::size_t kHalf = 2, kFloat = 4;
constexpr std::size_t kRow = 4096, kVocabulary = 32000, kNarrow = 128;
constexpr std::size_t kVector = 8;  // elements that a thread takes at once
constexpr std::size_t kAligned = 256;

struct Operands {
  std::size_t traffic{};                  ///< bytes read and written for each element
  std::size_t row = kRow;                 ///< its longest
  std::array<std::size_t, 4> elements{};  ///< bytes of one, by operand
  std::size_t of_columns = 0;             ///< the last operand's bytes for each column instead
};

Operands operands_of(KernelKind kind) {
  using enum KernelKind;
  switch (kind) {
    case Pointwise:
    case Captured:  // of the same bytes
      return {3 * kHalf, kRow, {kHalf, kHalf, kHalf}};
    case Narrow:
      return {kFloat + kHalf, kRow, {kFloat, kHalf}};
    case Widen:
      return {kHalf + kFloat, kRow, {kHalf, kFloat}};
    case Mixed:
      return {2 * kFloat + kHalf, kRow, {kFloat, kHalf}};
    case Strided:  // half of each row
      return {3 * kHalf / 2, kNarrow, {kHalf, kHalf, kHalf}};
    case Concatenate:
      return {2 * kHalf, kNarrow, {kHalf, kHalf}};
    case LayerNorm:
    case RmsNorm:
    case ShardCopy:
      return {2 * kHalf, kRow, {kHalf, kHalf}};
    case LayerNormBackward:
    case RmsNormBackward:
      return {3 * kHalf, kRow, {kHalf, kHalf, kHalf}};
    case LayerNormWeights:
    case RmsNormWeights:
      return {2 * kHalf, kRow, {kHalf, kHalf}, 2 * kFloat};  // two sums
    case ColumnSum:
      return {kHalf, kRow, {kHalf}, kFloat};
    case Softmax:
      return {2 * kFloat, kVocabulary, {kFloat, kFloat}};
    case SoftmaxBackward:
      return {3 * kFloat, kVocabulary, {kFloat, kFloat, kFloat}};
    case Gather:
    case GatherBackward:
      return {2 * kHalf, kRow, {kHalf}, kTableRows * kHalf};
    case Optimizer:
      return {7 * kFloat, kRow, {kFloat, kFloat, kFloat, kFloat}};
    case OptimizerHalf:
      return {7 * kHalf, kRow, {kHalf, kHalf, kHalf, kHalf}};
    case AttentionForward:
    case AttentionBackward:
      break;
  }
  return {};
}

}  // namespace

LibraryLayout layout_of(KernelKind kind, std::size_t bytes) {
  const Operands operands = operands_of(kind);
  LibraryLayout layout;
  if (operands.traffic == 0) return layout;
  const std::size_t step = operands.row == kNarrow ? 2 * kVector : kVector;  // halves of rows
  const std::size_t elements = std::max(bytes / operands.traffic, step);
  layout.columns = std::min(operands.row, elements / step * step);
  layout.rows = std::max<std::size_t>(1, elements / layout.columns);
  const std::size_t whole = layout.rows * layout.columns;
  for (std::size_t i = 0; i < operands.elements.size(); ++i) {
    const bool is_last = i + 1 == operands.elements.size();
    const std::size_t size = is_last && operands.of_columns != 0
                                 ? layout.columns * operands.of_columns
                                 : whole * operands.elements.at(i);
    layout.offsets.at(i) = layout.scratch_bytes;
    layout.scratch_bytes += (size + kAligned - 1) / kAligned * kAligned;
  }
  return layout;
}

AttentionShape attention_shape(KernelKind kind, double flops, double bytes, double width) {
  // Of each head, S tokens, D wide: 2 S (S + 192) D flops and 8 S D bytes forward, 5 S (S + 256) D
  // and 16 S D backward.
  const bool forward = kind == KernelKind::AttentionForward;
  const double of_tiles = forward ? 192 : 256;
  const double sequence = flops / std::max(bytes, 1.0) * (forward ? 4 : 3.2) - of_tiles;
  AttentionShape shape;
  shape.width = std::max<std::size_t>(kVector, static_cast<std::size_t>(width));
  constexpr double kMostVectors = 1
                                  << 21;  // 16 million tokens: more than any memory holds scores of
  shape.sequence = kVector * static_cast<std::size_t>(
                                 std::clamp(std::round(sequence / kVector), 1.0, kMostVectors));
  const double of_a_head =
      (forward ? 8.0 : 16.0) * static_cast<double>(shape.sequence * shape.width);
  shape.heads = static_cast<std::size_t>(std::max(1.0, std::round(bytes / of_a_head)));
  return shape;
}

}  // namespace foretrace::hw
