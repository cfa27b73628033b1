// "Where the time goes" of a run's page: what each GPU does or waits for, the critical path, and
// what foretrace explain found; a measured step's operations by family.
#pragma once

#include "reports/page/html_rows.h"

namespace foretrace {

/// For run.mustache: empty where no side has spans.
MustacheData uses_section(const ReportRun& run);

/// Of a measured step, joined call by call: all of its operations, summed; for run.mustache.
void set_families(MustacheData& data, const Comparison& c);

}  // namespace foretrace
