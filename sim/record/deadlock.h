// Why a run did not end: who waits, at which line, and for what.
#pragma once

#include <memory>
#include <vector>

#include "reports/timeline/timeline.h"
#include "sim/host/thread.h"
#include "sim/world.h"

namespace foretrace::sim {

/// Completed when every host thread has finished and every stream is empty.
Outcome explain_outcome(const Program& program,
                        const std::vector<std::unique_ptr<HostThread>>& threads, World& world);

}  // namespace foretrace::sim
