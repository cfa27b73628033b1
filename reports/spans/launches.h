// The arrows that a timeline does not store: from a host call to what it made a device do.
#pragma once

#include <vector>

#include "reports/timeline/timeline.h"

namespace foretrace {

/// One per device span on a stream that has a host call (part 0) of the same op, instance and
/// process; ordered by the device span.
std::vector<Flow> launch_flows(const Timeline& timeline);

}  // namespace foretrace
