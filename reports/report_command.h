// foretrace report: one self-contained HTML page of one or several runs.
#pragma once

#include <CLI/CLI.hpp>

namespace foretrace {

void add_report_command(CLI::App& app, int& exit_code);

}  // namespace foretrace
