// foretrace nccl-tests: nccl-tests' flags and its table, without a GPU; and real output compared.
#pragma once

#include "scenarios/command.h"

namespace foretrace {

void add_nccl_tests_command(CLI::App& app, int& exit_code);

}  // namespace foretrace
