// A capture as a measured timeline: what compare, report and export read.
#pragma once

#include "reports/capture/capture.h"
#include "reports/timeline/timeline.h"

namespace foretrace::capture {

/// Lanes for host threads and streams, a span for each call and for what it started, the region
/// `step` for each iteration. Times since the earliest event. Processes without a rank, or with one
/// that another has, are numbered in their order.
Timeline timeline_of(const Capture& capture);

}  // namespace foretrace::capture
