// A Perfetto trace (.pftrace) of one or two timelines on one time axis: each under a root track of
// its own, below it the processes with their host threads and devices, arrows from calls to what
// they launch. Opens in ui.perfetto.dev.
#pragma once

#include <iosfwd>
#include <span>

#include "reports/timeline/timeline.h"

namespace foretrace {

/// In the order given, predicted first by convention. Every timeline begins at 0.
void write_perfetto(std::span<const Timeline* const> timelines, std::ostream& out);

}  // namespace foretrace
