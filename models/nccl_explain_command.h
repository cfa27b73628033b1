// foretrace nccl-explain: what NCCL would do with an operation, and why.
#pragma once

#include <CLI/CLI.hpp>

namespace foretrace {

void add_nccl_explain_command(CLI::App& app, int& exit_code);

}  // namespace foretrace
