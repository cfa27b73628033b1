// What copies cost: the host's part, and the copy engine's. Pure functions of the machine's
// parameters, which the Reading notes. A copy inside one device is a kernel: models/cost/kernel.h.
#pragma once

#include <cstdint>

#include "models/cost/host.h"
#include "models/machine/reading.h"

namespace foretrace::cost {

enum class Route : std::uint8_t {
  HostToHost,
  PinnedToDevice,
  DeviceToPinned,
  PageableToDevice,  ///< through the driver's own pinned memory
  DeviceToPageable,
  PeerDirect,  ///< from GPU to GPU over NVLink
  PeerStaged   ///< without peer access: through the host
};

struct Copy {
  Route route{};
  Bytes size;
  bool from_cache = false;  ///< the host memory that it reads is in the last-level cache
  bool to_fresh = false;    ///< into pageable memory whose pages were never touched
};

/// From the call to its return, where it does not wait for the copy: with what the host moves
/// itself.
Duration copy_call_time(Reading& read, const Call& call, const Copy& copy);

/// The parameter that `copy_call_time` has for a call of its own.
Param copy_call(Route route);

/// Up to here a copy from pageable memory travels in the command stream: the host does not wait.
bool travels_with_the_call(Reading& read, const Copy& copy);

/// What the copy engine does: `latency`, then `bytes` through the links of the route, of which a
/// single copy gets at most the parameter `rate`.
struct EngineCost {
  Duration latency;
  Bytes bytes;
  Param rate{};
};
EngineCost engine_cost(Reading& read, const Copy& copy);

/// From the copy's begin to its end, when no other copy shares its links.
Duration copy_time(Reading& read, const Copy& copy);

}  // namespace foretrace::cost
