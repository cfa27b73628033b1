// The data check's kernels: fill memory with a pattern (hash.h), compare memory with a combination
// of patterns.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "hw/cuda/kernels.h"

namespace foretrace::hw {

/// As Term of content.h, for a kernel's parameters.
struct PatternTerm {
  std::uint32_t seed;
  std::int64_t shift;
  double factor;
};
struct PatternSum {
  static constexpr int kMaxTerms = 64;
  Combine combine;
  int count;
  PatternTerm terms[kMaxTerms];
};

/// What a comparison found; zeroed by the caller except first_index, which starts at its maximum.
struct Mismatch {
  unsigned long long count;
  unsigned long long first_index;
};

/// Element i of dst becomes element first_index + i of the pattern.
cudaError_t launch_pattern_fill(cudaStream_t stream, Element type, void* dst, std::size_t count,
                                std::uint64_t first_index, std::uint32_t seed);

/// Compares `count` elements, whose indices count from first_index, exactly.
cudaError_t launch_compare(cudaStream_t stream, Element type, const void* data, std::size_t count,
                           std::uint64_t first_index, const PatternSum& expected,
                           Mismatch* mismatch);

}  // namespace foretrace::hw
