// foretrace list scenarios|ops. A library that knows more to list adds its own subcommand to
// app.get_subcommand("list"), in a command that is named after this one.
#pragma once

#include "scenarios/command.h"

namespace foretrace {

void add_list_command(CLI::App& app, int& exit_code);

}  // namespace foretrace
