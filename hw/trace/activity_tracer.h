// What the GPUs did, from CUPTI's activity records: kernels, copies and sets with their times on
// clock.h's clock and the operation that caused them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

#include "hw/trace/records.h"

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

  /// CUPTI's number for a stream of the current device; 0 when CUPTI does not say.
  static std::uint32_t stream_id(cudaStream_t stream);
  /// Why tracing cannot work here; empty when it can. Needs a GPU.
  static std::string problem();
};

/// "void foo::bar<int>(float*)" as CUPTI gives it, mangled, to "foo::bar<int>".
std::string readable_kernel_name(const char* mangled);

}  // namespace foretrace::hw
