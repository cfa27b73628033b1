#include "sim/explain/explain.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "reports/compare/run_files.h"
#include "reports/compare/run_scenario.h"
#include "scenarios/command_line/command.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"

namespace foretrace {
namespace {

struct ExplainOptions {
  std::filesystem::path run;
  std::filesystem::path scenario;
  std::string machine;
  std::vector<std::string> with;
  ParameterValues parameters;
  OutputOptions output;
};

/// The machine that a prediction was made with; a measurement does not know the model's name.
std::string machine_of(const ExplainOptions& options, const LoadedTimeline& loaded) {
  if (!options.machine.empty()) return options.machine;
  const std::string& name = loaded.timeline.origin.machine;
  const auto changed = name.find(" with ");
  if (loaded.timeline.origin.measured || changed != std::string::npos) {
    throw UsageError{
        "which machine model to simulate on is not known from the timeline\n"
        "  hint: --machine h200-nvswitch-8, and --with what was changed"};
  }
  return name;
}

int run_explain(const ExplainOptions& options) {
  const Run run = load_run(options.run);
  const LoadedTimeline& loaded = run.measured ? *run.measured : *run.predicted;
  const Program program = load_scenario(
      options.scenario.empty() ? find_scenario(loaded) : options.scenario, options.parameters);
  check_same_program(program, loaded);
  const Machine machine =
      changed_machine(machine_of(options, run.predicted ? *run.predicted : loaded), options.with);
  const explain::Explanation explanation = explain::explain(program, machine);
  emit(options.output, options.output.format == OutputFormat::Json
                           ? json_of(loaded.timeline, explanation)
                           : text_of(loaded.timeline, explanation));
  return kDone;
}

}  // namespace

void add_explain_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App& command = add_subcommand(
      app, "explain",
      "Why a run takes as long as it does: what each GPU waits for, and the gain without each "
      "cause",
      "foretrace explain RUN/\n  foretrace explain measured/ --machine h200-nvswitch-8");
  command
      .add_option("run", options->run, "A run directory or a timeline file; measured goes first")
      ->required()
      ->option_text("RUN/");
  command.add_option("-m,--machine", options->machine,
                     "Machine model to simulate on; default: that of the run's prediction");
  add_with_option(command, options->with);
  add_scenario_options(command, options->scenario, options->parameters);
  add_output_options(command, options->output);
  command.callback([options, &exit_code] { exit_code = run_explain(*options); });
}

}  // namespace foretrace
