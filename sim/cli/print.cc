#include "scenarios/base/text/print.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "reports/export/program_writer.h"
#include "reports/export/training_step_writer.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/read/scenario.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/write/program_text.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"

namespace foretrace {
namespace {

/// Names may hold any bytes.
constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;

struct PrintOptions {
  std::string file;
  std::string format = "text";
  ParameterValues parameters;
};

}  // namespace

void add_print_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<PrintOptions>();
  CLI::App& command = add_subcommand(
      app, "print",
      "Write the scenario that a file reads as: a training step operation by operation, "
      "includes put in; or the program that both executors run, as JSON",
      "foretrace print scenarios/training/llama_step_fsdp.yaml > expanded.yaml");
  command.add_option("file", options->file, "Scenario file")->required();
  command
      .add_option("--format", options->format,
                  "text (a scenario) or json (the program: what hw/pytorch/measure.py runs; of a "
                  "training step also what it "
                  "says: what hw/pytorch/train.py runs)")
      ->check(CLI::IsMember({"text", "json"}));
  add_set_option(command, options->parameters);
  command.callback([options, &exit_code] {
    exit_code = kDone;
    if (options->format == "json") {
      auto json = program_json(load_scenario(options->file, options->parameters));
      const std::string text = read_text_file(options->file);
      if (const auto training = read_training(text, options->file, options->parameters)) {
        json["training_step"] = training_step_json(training->step);
      }
      print_out("{}\n", json.dump(-1, ' ', false, kReplace));
      return;
    }
    const std::string text = read_text_file(options->file);
    if (const auto training = read_training(text, options->file, options->parameters)) {
      print_out("{}", scenario_text(training->expansion.program));
    } else if (const auto capture = read_captured(text, options->file, options->parameters)) {
      print_out("{}", scenario_text(capture->expansion.program));
    } else if (const auto serving =
                   read_serving_scenario(text, options->file, options->parameters)) {
      print_out("{}", scenario_text(serving->program));
    } else {
      print_out("{}", self_contained(text, options->file));
    }
  });
}

}  // namespace foretrace
