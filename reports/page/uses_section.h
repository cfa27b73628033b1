// "Where the time goes" of a run's page: what each GPU does or waits for, the critical path, and
// what foretrace explain found; a measured step's operations by family.
#pragma once

#include "reports/page/html_rows.h"

namespace foretrace {

/// For run.mustache: empty where no side has spans.
MustacheData uses_section(const ReportRun& run);

/// requests_section.cc: how many there are at a time, percentiles of their times with bands, what
/// limits the engines. Says that there is none where no side has requests.
MustacheData requests_section(const ReportRun& run, const std::string& run_id);

/// Of a measured step, joined call by call: all of its operations, summed; for run.mustache.
void set_families(MustacheData& data, const Comparison& c);

}  // namespace foretrace
