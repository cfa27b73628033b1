// Cheap random elements for kernels, from hash.h.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <type_traits>

#include "hw/cuda/hash.h"

namespace foretrace::hw {

/// [0, 1) for floating point; 0 ... 3 for integers, whose sums then stay small.
template <class T>
__device__ T random_element(std::uint32_t bits) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(bits >> 30);
  } else if constexpr (sizeof(T) == 2) {  // 8 bits are exact in bfloat16 too
    return static_cast<T>(static_cast<float>(bits >> 24) * 0x1p-8F);
  } else {
    return static_cast<T>(static_cast<float>(bits >> 8) * 0x1p-24F);
  }
}

/// Standard normal numbers, by Box and Muller; integers as random_element().
template <class T>
__device__ T normal_element(std::uint32_t bits, std::uint32_t other) {
  if constexpr (std::is_integral_v<T>) {
    return random_element<T>(bits);
  } else {
    const float radius = sqrtf(-2 * logf((static_cast<float>(bits >> 8) + 1) * 0x1p-24F));
    return static_cast<T>(radius * cospif(static_cast<float>(other >> 8) * 0x1p-23F));
  }
}

/// One hash per 16 bytes keeps a fill bound by memory, not by arithmetic.
template <class T>
__device__ uint4 random_vector(std::uint32_t seed, std::uint64_t index) {
  uint4 result;
  T* elements = reinterpret_cast<T*>(&result);
  std::uint32_t bits = random_bits(seed, index);
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(uint4) / sizeof(T)); ++i) {
    elements[i] = random_element<T>(bits);
    bits = bits * 0x915f77f5U + 0x2545f491U;
  }
  return result;
}

}  // namespace foretrace::hw
