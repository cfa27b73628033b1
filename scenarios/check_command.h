// foretrace check FILE...: reads everything, runs nothing.
#pragma once

#include "scenarios/command.h"
#include "scenarios/read_scenario.h"

namespace foretrace {

void add_check_command(CLI::App& app, int& exit_code);

/// Adds `--set name=value` to a command; may be given several times.
void add_set_option(CLI::App& command, ParameterValues& values);

}  // namespace foretrace
