#include "scenarios/text/print.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "scenarios/command_line/command.h"
#include "scenarios/read/scenario.h"
#include "scenarios/text/text_file.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"

namespace foretrace {
namespace {

struct PrintOptions {
  std::string file;
  ParameterValues parameters;
};

}  // namespace

void add_print_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<PrintOptions>();
  CLI::App& command = add_subcommand(
      app, "print",
      "Write the scenario that a file reads as: a training step operation by operation, "
      "includes put in",
      "foretrace print scenarios/training/llama3_8b_fsdp.yaml > expanded.yaml");
  command.add_option("file", options->file, "Scenario file")->required();
  add_set_option(command, options->parameters);
  command.callback([options, &exit_code] {
    const std::string text = read_text_file(options->file);
    const auto expanded = read_training(text, options->file, options->parameters);
    print_out("{}", expanded ? expanded->text : self_contained(text, options->file));
    exit_code = kDone;
  });
}

}  // namespace foretrace
