// foretrace compare: how far a prediction is from its measurement.
#pragma once

#include <CLI/CLI.hpp>

namespace foretrace {

void add_compare_command(CLI::App& app, int& exit_code);

}  // namespace foretrace
