// Runs one subcommand in this process, as `foretrace SUBCOMMAND ...` would.
#pragma once

#include <string>
#include <vector>

#include "scenarios/command.h"

namespace foretrace::test {

struct Ran {
  int exit_code{};
  std::string out;
  std::string err;
};

Ran run_command(AddCommand add, const std::vector<std::string>& arguments);

}  // namespace foretrace::test
