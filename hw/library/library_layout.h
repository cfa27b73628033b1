// What a library_kernel works on: a scenario says how many bytes it reads and writes and names no
// tensors, so shapes are chosen here. Rows of 4,096 elements, of 32,000 for the softmax over a
// vocabulary; attention is causal, with as many heads for keys as for queries, and its sequence is
// what its flops and bytes say.
#pragma once

#include <array>
#include <cstddef>

#include "scenarios/program/library_work.h"

namespace foretrace::hw {

/// Where a kernel's operands lie in its scratch memory, in the order that library_kernels.cu has;
/// each is rows x columns, row-major, and begins at a multiple of 256 bytes. The last one of sums,
/// and the table of a gather, have columns only, so many times.
struct LibraryLayout {
  std::size_t rows{}, columns{};
  std::array<std::size_t, 4> offsets{};
  std::size_t scratch_bytes{};
};

/// Rows of the table that a gather reads.
inline constexpr std::size_t kTableRows = 8192;

/// Of a kernel that reads and writes `bytes` in all; attention has none.
LibraryLayout layout_of(KernelKind kind, std::size_t bytes);

/// Queries, keys and values are heads x sequence x width, of bfloat16.
struct AttentionShape {
  std::size_t heads{}, sequence{}, width{};
  std::size_t operand_bytes() const { return 2 * heads * sequence * width; }
  std::size_t score_bytes() const { return 2 * heads * sequence * sequence; }
};

/// Of an attention of so many flops and bytes, as a training step's expansion counts them
/// (scenarios/training_step/attention.cc). The sequence is a multiple of 8.
AttentionShape attention_shape(KernelKind kind, double flops, double bytes, double width);

}  // namespace foretrace::hw
