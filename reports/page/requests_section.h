// The report's section on requests: how many there are at a time, percentiles of their times with
// bands, what limits the engines.
#pragma once

#include "reports/page/html_rows.h"

namespace foretrace {

/// For report.mustache; says that there is none where no side has requests.
MustacheData requests_section(const ReportRun& run, const std::string& run_id);

}  // namespace foretrace
