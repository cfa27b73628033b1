#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "reports/compare/run_files.h"
#include "scenarios/base/command_line/command.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"
#include "sim/cli/plan/explained.h"

namespace foretrace {
namespace {

struct ExplainOptions {
  std::filesystem::path run;
  ExplainedWith with;
  OutputOptions output;
};

int run_explain(const ExplainOptions& options) {
  const Run run = load_run(options.run);
  const LoadedTimeline& loaded = run.measured ? *run.measured : *run.predicted;
  const explain::Explanation explanation =
      explained(loaded, run.predicted ? *run.predicted : loaded, options.with);
  const OutputFormat format = options.output.format;
  emit(options.output, format == OutputFormat::Json  ? json_of(loaded.timeline, explanation)
                       : format == OutputFormat::Csv ? csv_of(explanation)
                                                     : text_of(loaded.timeline, explanation));
  return explanation.ends ? kDone : kBadAnswer;
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
  command.add_option("-m,--machine", options->with.machine,
                     "Machine model to simulate on; default: that of the run's prediction");
  add_with_option(command, options->with.with);
  add_host_option(command, options->with.with);
  add_scenario_options(command, options->with.scenario, options->with.parameters);
  add_output_options(command, options->output);
  command.callback([options, &exit_code] { exit_code = run_explain(*options); });
}

}  // namespace foretrace
