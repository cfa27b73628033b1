// foretrace merge: process starts measured apart, as one measurement.
#pragma once

#include <CLI/CLI.hpp>

namespace foretrace {

void add_merge_command(CLI::App& app, int& exit_code);

}  // namespace foretrace
