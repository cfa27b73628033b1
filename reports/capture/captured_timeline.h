// A capture as a measured timeline: what compare, report and export read.
#pragma once

#include <optional>

#include "reports/capture/capture.h"
#include "reports/timeline/timeline.h"
#include "scenarios/program/program.h"

namespace foretrace::capture {

/// Lanes for host threads and streams, a span for each call and for what it started, the region
/// `step` with the time of each iteration. Times since the earliest event. Processes are numbered
/// in their order.
Timeline timeline_of(const Capture& capture);

/// The same of the one iteration that `program`, which scenario_of() wrote, is of: as a measurement
/// of it, which compare holds its prediction against.
Timeline timeline_of(const Capture& capture, const Program& program,
                     std::optional<std::size_t> iteration);

}  // namespace foretrace::capture
