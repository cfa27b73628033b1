// A measured step's operations by family, as a page shows them.
#pragma once

#include "reports/page/html_rows.h"

namespace foretrace {

/// Of a measured step, joined call by call: all of its operations, summed; for run.mustache.
void set_families(MustacheData& data, const Comparison& c);

}  // namespace foretrace
