// What a report says first of a training step: time, tokens, MFU, what limits it, memory.
#pragma once

#include <optional>

#include "reports/compare/run_files.h"
#include "reports/page/html_report.h"

namespace foretrace {

/// Of a predicted step whose scenario is found and whose machine is known by name; else empty.
std::optional<ReportStep> step_facts(const LoadedTimeline& predicted);

}  // namespace foretrace
