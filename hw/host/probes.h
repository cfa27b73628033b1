// The probes of a host. Each set needs what it says and owns its memory until it is destroyed.
#pragma once

#include <vector>

#include "hw/host/probe.h"
#include "hw/host/system.h"

namespace foretrace::hw {

/// Copies by size and state of the pages, first touch, one core and all of them, the page cache.
std::vector<Probe> memory_probes(const HostSystem& system);

/// Clocks, locks, wake-ups between threads, large blocks and mappings.
std::vector<Probe> call_probes(const HostSystem& system);

/// What the driver's calls and its copies to and from pageable memory cost, on device 0; none where
/// there is no GPU. Throws CudaError.
std::vector<Probe> driver_probes();

}  // namespace foretrace::hw
