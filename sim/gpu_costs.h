// The device-side latencies of a machine, looked up once.
#pragma once

#include "models/machine.h"

namespace foretrace::sim {

struct GpuCosts {
  explicit GpuCosts(const Machine& machine)
      : kernel_gap{machine.time(Param::KernelGap)},
        event_gap{machine.time(Param::EventGap)},
        event_latency{machine.time(Param::EventLatency)},
        copy_gap{machine.time(Param::CopyGap)},
        copy_after_kernel{machine.time(Param::CopyAfterKernel)} {}

  Duration kernel_gap;
  Duration event_gap;
  Duration event_latency;
  Duration copy_gap;
  Duration copy_after_kernel;
};

}  // namespace foretrace::sim
