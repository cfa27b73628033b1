// Every span of one or two timelines as a CSV row, for spreadsheets and pandas.
#pragma once

#include <iosfwd>
#include <span>

#include "reports/timeline/timeline.h"

namespace foretrace {

void write_span_csv(std::span<const Timeline* const> timelines, std::ostream& out);

}  // namespace foretrace
