#pragma once
// CUDA's types as its binary interface has them, so that no toolkit is needed to build. Source:
// CUDA Toolkit's documentation of the runtime API, data structures; the same in CUDA 12 and 13
// unless said otherwise.
#include <cstddef>
#include <cstdint>

namespace foretrace::emulated {

struct Dim3 {
  uint32_t x, y, z;
};

enum Error : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotReady = 600,
  kNotSupported = 801,
  kInvalidDevice = 101,
  kStreamCaptureUnsupported = 900,
};

struct LaunchAttribute {
  int id;
  alignas(8) char value[64];
};
constexpr int kAttributeCooperative = 2, kAttributeCluster = 4;

struct LaunchConfig {  // cudaLaunchConfig_t
  Dim3 grid, block;
  size_t shared;
  void* stream;
  LaunchAttribute* attributes;
  unsigned count;
};

struct DriverLaunchConfig {  // CUlaunchConfig
  uint32_t grid[3], block[3], shared;
  void* stream;
  LaunchAttribute* attributes;
  unsigned count;
};

struct FuncAttributes {  // cudaFuncAttributes
  size_t shared, constant, local;
  int max_threads, registers, ptx, binary, cache_mode, max_dynamic_shared, carveout,
      cluster_must_be_set, cluster[3], cluster_policy, non_portable_cluster, reserved[16];
};

struct PointerAttributes {  // cudaPointerAttributes: what CUDA 12 and 13 share
  int type, device;
  void *device_pointer, *host_pointer;
};
enum MemoryType : int { kUnregistered = 0, kHost = 1, kDeviceMemory = 2 };

enum CopyKind : int { kHostToHost, kHostToDevice, kDeviceToHost, kDeviceToDevice, kDefault };
enum CaptureStatus : int { kNoCapture = 0, kActive = 1 };

}  // namespace foretrace::emulated
