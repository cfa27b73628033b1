// What the GPUs did, from CUPTI's activity records: kernels, copies and sets with their times on
// clock.h's clock and the operation that caused them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw/thread_state.h"

namespace foretrace::hw {

/// While it lives, the CUDA work that this thread causes belongs to `execution`. Marks nest; the
/// innermost counts.
class OperationMark {
 public:
  explicit OperationMark(Execution execution);
  ~OperationMark();
  OperationMark(const OperationMark&) = delete;
  OperationMark& operator=(const OperationMark&) = delete;
};

/// An operation's number for CUPTI, and back: 24 bits of OpId, 40 of instance.
std::uint64_t to_external_id(Execution execution);
Execution from_external_id(std::uint64_t id);

/// One thing a GPU did.
struct DeviceActivity {
  enum class Kind : std::uint8_t { Kernel, Copy, Set };
  Kind kind = Kind::Kernel;
  std::optional<Execution> cause;  ///< empty: nobody's, as a library's internal work
  std::int64_t begin_ns{};
  std::int64_t end_ns{};
  int ordinal{};                ///< CUDA device
  std::uint32_t stream_id{};    ///< CUPTI's number of the stream
  std::string name;             ///< of a kernel, without its parameters
  std::uint32_t grid_blocks{};  ///< of a kernel; NCCL: one per channel
};

/// CUPTI has no user pointer in its callbacks, so there is one tracer per process at a time.
/// Tracing slows every CUDA call down and never quite stops to (CUPTI stays attached): time
/// regions before the first tracer is made.
class ActivityTracer {
 public:
  ActivityTracer();
  ~ActivityTracer();
  ActivityTracer(const ActivityTracer&) = delete;
  ActivityTracer& operator=(const ActivityTracer&) = delete;

  /// Everything recorded since the last call, in the order of begin. The devices must be idle.
  std::vector<DeviceActivity> collect();
  /// Records that did not fit CUPTI's buffers; their spans are missing.
  std::uint64_t dropped() const;

  /// CUPTI's number for a stream of the current device.
  static std::uint32_t stream_id(cudaStream_t stream);
  /// Why tracing cannot work here; empty when it can. Needs a GPU.
  static std::string problem();
};

/// "void foo::bar<int>(float*)" as CUPTI gives it, mangled, to "foo::bar<int>".
std::string readable_kernel_name(const char* mangled);

}  // namespace foretrace::hw
