// Kernels of our own for what PyTorch's libraries do in a training step (library_kernel), the
// products of attention excepted. Memory-bound: one pass over their operands, or two where a row's
// sum comes first.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "hw/library/library_layout.h"

namespace foretrace::hw {

/// On operands in `scratch`, which holds layout.scratch_bytes.
cudaError_t launch_library_kernel(cudaStream_t stream, KernelKind kind, const LibraryLayout& layout,
                                  void* scratch);

/// Attention's scores, rows of bfloat16, in place: softmax.
cudaError_t launch_score_softmax(cudaStream_t stream, void* scores, std::size_t rows,
                                 std::size_t columns);
/// Its gradient, in place, with the softmax's values in `probabilities`.
cudaError_t launch_score_gradient(cudaStream_t stream, void* gradient, const void* probabilities,
                                  std::size_t rows, std::size_t columns);

}  // namespace foretrace::hw
