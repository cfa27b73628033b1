// What a run's length is made of: the spans that had to end, one after the other, for it to end.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "reports/spans/span_class.h"
#include "reports/timeline/timeline.h"

namespace foretrace::explain {

/// A span, or a time in which there is none.
struct PathPart {
  std::int64_t begin_ns = 0, end_ns = 0;
  const Span* span = nullptr;
};

/// From the run's end back to its begin. Before a device's span that was queued when the one before
/// it on its stream ended, and follows it at once, comes that one. Before others comes the one that
/// ended last before it on any device; or its own call, if that returned later; or, if it did so
/// while a kernel of the process ran, this kernel up to then. Before a call comes what its thread
/// did before; behind a wait the device's span that ended last. How long spans of each kind
/// (span_class.h) are on it, and how long nothing is.
struct CriticalPath {
  std::vector<PathPart> parts = {};  ///< in order, without gaps
  std::array<std::int64_t, kSpanClasses> by_class{};
  std::int64_t nothing_ns = 0;
  std::int64_t ns = 0;
};
CriticalPath critical_path(const Timeline& timeline);

}  // namespace foretrace::explain
