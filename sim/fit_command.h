// foretrace fit: measured calibration runs in, a machine file out.
#pragma once

#include <CLI/CLI.hpp>

namespace foretrace {

void add_fit_command(CLI::App& app, int& exit_code);

}  // namespace foretrace
