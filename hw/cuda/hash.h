// Numbers that a kernel and the host compute alike: hashes of (seed, index), so that no state is
// kept and any element can be computed again. Not for statistics.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define FORETRACE_HOST_DEVICE __host__ __device__
#else
#define FORETRACE_HOST_DEVICE
#endif

namespace foretrace::hw {

/// Mixes 32 bits well enough for data (constants: Chris Wellons' "lowbias32").
FORETRACE_HOST_DEVICE inline std::uint32_t mixed(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  x ^= x >> 16;
  return x;
}

FORETRACE_HOST_DEVICE inline std::uint32_t random_bits(std::uint32_t seed, std::uint64_t index) {
  return mixed(static_cast<std::uint32_t>(index) ^
               mixed(static_cast<std::uint32_t>(index >> 32) ^ (seed * 0x9e3779b9U + 0x85ebca6bU)));
}

/// Element `index` of the check pattern `seed`: an integer 0 ... 7, exact in every type.
inline constexpr int kPatternMax = 7;
FORETRACE_HOST_DEVICE inline int pattern_value(std::uint32_t seed, std::uint64_t index) {
  return static_cast<int>(random_bits(seed, index) >> 29);
}

}  // namespace foretrace::hw
