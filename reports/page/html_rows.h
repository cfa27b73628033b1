// Rows of the HTML report's tables, for its mustache template.
#pragma once

#include <kainjow/mustache.hpp>
#include <string>

#include "reports/page/html_report.h"

namespace foretrace {

using MustacheData = kainjow::mustache::data;

/// Where links to a scenario line lead: the source below, or the run when that is not shown.
std::string line_anchor(const std::string& run_id, int line, bool has_source);

/// Where an error stands on the axis of a row's glyph: "70%" of its width.
std::string percent_on_glyph(double error);

/// Of runs that did not complete.
MustacheData outcome_rows(const ReportRun& run);
/// The scenario, line by line.
MustacheData source_rows(const ReportRun& run, const std::string& run_id);
MustacheData region_rows(const ReportRun& run, const std::string& run_id);
MustacheData operation_rows(const ReportRun& run, const std::string& run_id);
/// The work (kernels, copies, collectives, host computing) whose differences add up to most. Host
/// calls are left out: waits last as long as what they wait for, and tracing lengthens the others.
MustacheData worst_operation_rows(const ReportRun& run, const std::string& run_id);

}  // namespace foretrace
