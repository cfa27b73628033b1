#include "sim/fit_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "models/machine.h"
#include "reports/run_files.h"
#include "reports/text_table.h"
#include "reports/timeline_json.h"
#include "reports/write_file.h"
#include "scenarios/command.h"
#include "scenarios/read_scenario.h"
#include "sim/fit.h"

namespace foretrace {
namespace {

struct Options {
  std::vector<std::string> runs;
  std::string machine;
  std::string name;
  std::string output;
  std::string from = "calibration";
};

CalibrationRun load_calibration(const std::string& path) {
  Run run = load_run(path);
  if (!run.measured) throw UsageError{fmt::format("{}: no {} there", path, kMeasuredFile)};
  Timeline measured = std::move(run.measured->timeline);
  Program program = load_scenario(measured.origin.file);
  if (program.hash != measured.origin.program_hash) {
    throw UsageError{
        fmt::format("{}: measured with another version of {} (program hash {}, now {})", path,
                    measured.origin.file, measured.origin.program_hash, program.hash)};
  }
  return {std::move(program), std::move(measured)};
}

std::string residual_table(const FitResult& result) {
  TextTable table;
  using enum TextTable::Align;
  table.column("scenario", Left);
  table.column("region", Left);
  table.column("measured", Right);
  table.column("fitted", Right);
  table.column("residual", Right);
  table.column("spread", Right);
  for (const FitResidual& r : result.residuals) {
    table.row({r.scenario, r.region, format_time(r.measured_ns), format_time(r.predicted_ns),
               format_signed_percent(r.predicted_ns / r.measured_ns - 1),
               format_percent(r.spread)});
  }
  return table.markdown();
}

int run(const Options& options) {
  std::vector<CalibrationRun> runs;
  for (const std::string& path : options.runs) runs.push_back(load_calibration(path));
  Machine start = load_machine(options.machine);
  if (!options.name.empty()) start.name = options.name;
  const FitResult result = fit(runs, start, options.from);
  fmt::print("{}", residual_table(result));
  for (const Param param : result.undetermined) {
    fmt::print(stderr, "not determined by these runs, left as it was: {}\n", info(param).key);
  }
  write_file(options.output, machine_text(result.machine));
  fmt::print(stderr, "{} parameters fitted to {} regions: {}\n", result.fitted.size(),
             result.residuals.size(), options.output);
  return kDone;
}

}  // namespace

void add_fit_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App& command = add_subcommand(
      app, "fit",
      "Fit a machine model's parameters to measured calibration runs; those from a datasheet or a "
      "publication stay",
      "foretrace fit RUNS/calibrate_* --machine h200-nvswitch-8 -o my-machine.yaml");
  command.add_option("runs", options->runs, "Directories with measured.timeline.json")->required();
  command.add_option("-m,--machine", options->machine, "Machine model to start from")->required();
  command.add_option("--name", options->name, "Name of the new machine model");
  command.add_option("--from", options->from, "What the file says the values were fitted from");
  command.add_option("-o,--output", options->output, "Machine file to write")->required();
  command.callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace foretrace
