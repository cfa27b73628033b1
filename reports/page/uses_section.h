// "Where the time goes" of a run's page: what each GPU does or waits for, the critical path, and
// what foretrace explain found.
#pragma once

#include "reports/page/html_rows.h"

namespace foretrace {

/// For run.mustache: empty where no side has spans.
MustacheData uses_section(const ReportRun& run);

}  // namespace foretrace
