// foretrace list: the names of scenarios, machines, operations and machine parameters.
#pragma once

#include <CLI/CLI.hpp>

namespace foretrace {

void add_list_command(CLI::App& app, int& exit_code);

}  // namespace foretrace
