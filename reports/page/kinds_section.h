// What a run's devices do, by kind of operation: a long step has ten thousand rows, and some thirty
// kinds.
#pragma once

#include <kainjow/mustache.hpp>

#include "reports/page/html_report.h"

namespace foretrace {

/// "has_kinds", rows of kernels, copies and NCCL operations of one kind and label, those that take
/// most time first, and "words". Empty where nearly every operation would be a row of its own.
kainjow::mustache::data kinds_section(const ReportRun& run);

}  // namespace foretrace
