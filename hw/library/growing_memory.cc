#include "hw/library/growing_memory.h"

#include "hw/cuda/cuda_check.h"
#include "hw/cuda/device_guard.h"
#include "hw/cuda/kernels.h"

namespace foretrace::hw {

GrowingMemory::~GrowingMemory() {
  for (const auto& [ordinal, piece] : pieces_) cuda_ignore(cudaFree(piece.data));
}

void* GrowingMemory::at(int ordinal, std::size_t bytes) {
  const std::lock_guard lock{mutex_};
  Piece& piece = pieces_[ordinal];
  if (piece.bytes >= bytes) return piece.data;
  use_device(ordinal);
  cuda_check(cudaFree(piece.data));
  piece = {};
  cuda_check(cudaMalloc(&piece.data, bytes));
  piece.bytes = bytes;
  cuda_check(launch_random_fill(cudaStreamLegacy, Element::BFloat16, piece.data, bytes, 0,
                                Distribution::Normal));
  cuda_check(cudaStreamSynchronize(cudaStreamLegacy));
  return piece.data;
}

}  // namespace foretrace::hw
