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
/// What is added then, as a share of what the parts take on the wire: NCCL 2.28 on 2 H200s, 2 and
/// 12 MiB a part (tests/hw/causes/nccl_alignment.yaml). reduce_scatter: 0.18 in float32, 0.5 in
/// bfloat16.
inline constexpr double kUnalignedAllGather = 0.85;
inline constexpr double kUnalignedReduceScatter = 0.35;
inline constexpr double kUnalignedAllToAll = 1.6;
/// Bytes a second of gather and scatter then, of all others' parts and of the root's own, which its
/// kernel copies: gathers and scatters of 2 to 90 MB in blind rounds 1 to 36 on H200s and H100s,
/// which do not differ; 12 MiB of nccl_alignment.yaml, whose root is 0.
inline constexpr double kUnalignedScatterRate = 212e9;
inline constexpr double kUnalignedScatterOwnRate = 270e9;
inline constexpr double kUnalignedGatherRate = 175e9;
inline constexpr double kUnalignedGatherOwnRate = 212e9;

}  // namespace foretrace::nccl
