// foretrace-hw calibrate: everything that a machine file needs, measured in one command.
#pragma once

#include <CLI/CLI.hpp>

#include "hw/run/measurement.h"

namespace foretrace::hw {

void add_calibrate_command(CLI::App& app, int& exit_code, EndRun end_run);

}  // namespace foretrace::hw
