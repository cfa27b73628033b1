// Payload of one step of a channel's buffer (nccl src/include/device.h), in bytes.
#pragma once

namespace foretrace::nccl {

inline constexpr double kLlStepBytes = 32.0 * 1024;  ///< 64 KiB, half of it flags
inline constexpr double kLl128StepBytes = 614400.0 / 16 * 15;
inline constexpr double kSimpleStepBytes = 512.0 * 1024;

}  // namespace foretrace::nccl
