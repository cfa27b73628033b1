// A run as Chakra's execution traces: what each GPU did, how long it took, and what it waited for.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reports/timeline/timeline.h"
#include "scenarios/interchange/chakra_nodes.h"
#include "scenarios/program/program.h"

namespace foretrace::interchange {

struct ChakraExport {
  std::vector<ChakraTrace> ranks;  ///< of each GPU: process by process, device by device
  /// Those of communicators that are not all ranks, by the name that nodes have in `pg_name`.
  std::map<std::string, std::vector<std::uint32_t>> groups;
  std::vector<std::string> notes;  ///< what the format does not hold, a line each
};

/// Durations are the timeline's (one pass), sizes and dependencies the program's: streams, events,
/// waits of the host, and work of the host between its calls. `timeline` is of `program`, with all
/// of its processes. Throws UsageError where more than 2^20 operations are executed.
ChakraExport chakra_of(const Program& program, const Timeline& timeline);

}  // namespace foretrace::interchange
