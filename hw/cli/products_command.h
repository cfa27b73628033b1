// foretrace-hw products: measures a list of matrix products, what the models of them are fitted to.
#pragma once

#include <CLI/CLI.hpp>

namespace foretrace::hw {

void add_products_command(CLI::App& app, int& exit_code);

}  // namespace foretrace::hw
