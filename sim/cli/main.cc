// The command line foretrace: lists the commands; each lives with the library it drives.
#include "scenarios/command_line/command.h"
#include "sim/cli/commands.h"
#include "sim/cli/version.h"

int main(int argc, char** argv) {
  using namespace foretrace;
  return run_command_line(argc, argv,
                          "foretrace predicts what a multi-GPU program does in time, and compares "
                          "the prediction with a measurement.",
                          version_text(), {kCommands.begin(), kCommands.end()});
}
