#include "sim/applications/accept/accept.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "reports/compare/run_scenario.h"
#include "reports/timeline/timeline_json.h"
#include "reports/timeline/write_file.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "scenarios/base/text/text_file.h"
#include "sim/applications/accept/nvbandwidth.h"
#include "sim/applications/accept/write.h"
#include "sim/cli/commands.h"
#include "sim/cli/judge/predicted_run.h"
#include "sim/cli/options.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostInputs = 10'000;

struct AcceptCommand {
  std::vector<fs::path> inputs;
  std::string machine = kDefaultMachine;
  std::vector<std::string> with;
  std::string allowed = "30%", op_name;
  fs::path junit;
  OutputOptions output;
};

bool is_results(const fs::path& file) {
  const fs::path ending = file.extension();
  return ending == ".log" || ending == ".csv" || file.filename() == kMeasuredFile;
}

/// Measurements and logs below the directories; each other file as it is named.
std::vector<fs::path> files_of(const std::vector<fs::path>& inputs, Acceptance& into) {
  std::vector<fs::path> files;
  for (const fs::path& named : inputs) {
    std::error_code none;
    if (!fs::is_directory(named, none)) {
      files.push_back(named);
      continue;
    }
    std::size_t others = 0;
    const std::size_t before = files.size();
    for (const auto& entry : fs::recursive_directory_iterator(named)) {
      if (entry.is_directory(none)) continue;
      if (!entry.is_regular_file(none) && is_results(entry.path())) {
        throw UsageError{
            fmt::format("{}: no plain file, where results are looked for", entry.path().string())};
      }
      if (is_results(entry.path())) {
        files.push_back(entry.path());
      } else {
        ++others;
      }
      if (files.size() > kMostInputs) {
        throw UsageError{fmt::format("{}: more than {} results", named.string(), kMostInputs)};
      }
    }
    std::sort(files.begin() + static_cast<long>(before), files.end());
    if (files.size() == before) {
      throw UsageError{
          fmt::format("{}: no {}, *.log or *.csv below it", named.string(), kMeasuredFile)};
    }
    if (others > 0) {
      into.notes.push_back(
          fmt::format("{}: {} other files are not looked at", named.string(), others));
    }
  }
  return files;
}

/// Its scenario, predicted here: what lies beside the measurement may be of another machine.
void judge_run(const fs::path& file, const AcceptCommand& command, const AcceptOptions& options,
               Acceptance& into) {
  const Run run = load_run(file);
  if (!run.measured) throw UsageError{fmt::format("{}: not a measurement", file.string())};
  const Run predicted = run_of(find_scenario(*run.measured), command.machine);
  accept_run(predicted.predicted->timeline, run.measured->timeline, file.string(), options, into);
}

int run_accept(const AcceptCommand& command) {
  AcceptOptions options;
  options.allowed = parse_percent(command.allowed, "--allow");
  if (!command.op_name.empty()) options.assumed.op = parse_nccl_tests_op(command.op_name);
  check_outputs({command.output.file, command.junit});
  const Machine machine = changed_machine(command.machine, command.with);
  Acceptance acceptance;
  acceptance.machine = machine.name;
  for (const fs::path& file : files_of(command.inputs, acceptance)) {
    if (file.filename().string().ends_with(".timeline.json")) {
      if (!command.with.empty()) {
        throw UsageError{
            fmt::format("{}: --with changes what tables are held against, not scenarios\n"
                        "  hint: a machine file with based_on",
                        file.string())};
      }
      judge_run(file, command, options, acceptance);
      continue;
    }
    const std::string text = read_text_file(file);
    if (is_nvbandwidth(text)) {
      accept_nvbandwidth(text, file.string(), machine, acceptance);
    } else {
      accept_nccl_tests(file, machine, options, acceptance);
    }
  }
  for (const std::string& note : acceptance.notes) print_error("note: {}\n", note);
  if (acceptance.parts.empty()) throw UsageError{"nothing in these files can be judged"};
  if (!command.junit.empty()) write_file(command.junit, accept_junit(acceptance));
  emit(command.output, command.output.format == OutputFormat::Json  ? accept_json(acceptance)
                       : command.output.format == OutputFormat::Csv ? accept_csv(acceptance)
                                                                    : accept_text(acceptance));
  return acceptance.is_accepted() ? kDone : kBadAnswer;
}

}  // namespace

void add_accept_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<AcceptCommand>();
  CLI::App& command = add_subcommand(
      app, "accept", "Is a new machine as fast as such machines are? Exit 1 when it is not",
      "foretrace accept results/ --machine 8xH100+ib-ndr:2 --junit accept.xml\n"
      "  foretrace accept all_reduce.log --machine h200-nvswitch-8");
  command
      .add_option("results", options->inputs,
                  "Output of nccl-tests and nvbandwidth, measured.timeline.json of scenarios, or "
                  "directories with them (*.log, *.csv)")
      ->required()
      ->option_text("RESULTS...");
  add_machine_option(command, options->machine);
  add_with_option(command, options->with);
  add_host_option(command, options->with);
  command
      .add_option(
          "--allow", options->allowed,
          "Share of a table's sizes, or of a run's regions, that may be slower than the band "
          "of the prediction (default 30%); of links none")
      ->option_text("PERCENT");
  command.add_option("--op-name", options->op_name,
                     "Operation of nccl-tests' files that do not tell");
  command.add_option("--junit", options->junit, "JUnit XML, for a pipeline's page of tests")
      ->check(written_file({".xml"}), "")
      ->option_text("FILE");
  add_output_options(command, options->output);
  command.callback([options, &exit_code] { exit_code = run_accept(*options); });
}

}  // namespace foretrace
