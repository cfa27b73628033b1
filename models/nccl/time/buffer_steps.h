// Payload of one step of a channel's buffer (nccl src/include/device.h), in bytes.
#pragma once

#include <cstdint>

namespace foretrace::nccl {

inline constexpr double kLlStepBytes = 32.0 * 1024;  ///< 64 KiB, half of it flags
inline constexpr double kLl128StepBytes = 614400.0 / 16 * 15;
inline constexpr double kSimpleStepBytes = 512.0 * 1024;

/// A ring's part by Simple is passed on in two slices, none of them smaller than this
/// (nccl src/device/prims_simple.h: a 32nd of two buffer steps).
inline constexpr double kLeastSliceBytes = 2 * kSimpleStepBytes / 32;

/// What copies inside a kernel move at once when everything begins at a multiple of it; else they
/// go element by element (nccl src/device/common_kernel.h). Where the ranks' parts lie one behind
/// the other, all but the first begin as their size says.
inline constexpr std::uint64_t kPackBytes = 16;
inline bool is_aligned(double part_bytes) {
  return static_cast<std::uint64_t>(part_bytes) % kPackBytes == 0;
}

}  // namespace foretrace::nccl
