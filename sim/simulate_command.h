// foretrace simulate: a scenario and a machine in, a predicted timeline out.
#pragma once

#include <CLI/CLI.hpp>

namespace foretrace {

void add_simulate_command(CLI::App& app, int& exit_code);

}  // namespace foretrace
