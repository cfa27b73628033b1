// foretrace-hw measure: scenario files in, measured timelines out.
#pragma once

#include <CLI/CLI.hpp>

#include "hw/run/measurement.h"

namespace foretrace::hw {

void add_measure_command(CLI::App& app, int& exit_code, EndRun end_run);

}  // namespace foretrace::hw
