// Runs one subcommand in this process, as `foretrace SUBCOMMAND ...` would.
#pragma once

#include <string>
#include <vector>

#include "scenarios/base/text/errors.h"

namespace CLI {
class App;
}

namespace foretrace::test {

struct CommandRun {
  int exit_code{};
  std::string out;
  std::string err;
};

CommandRun run_command(void (*add)(CLI::App&, int&), const std::vector<std::string>& arguments);

}  // namespace foretrace::test
