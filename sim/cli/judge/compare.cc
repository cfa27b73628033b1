#include "reports/compare/compare.h"

#include <algorithm>
#include <memory>

#include "reports/compare/output.h"
#include "reports/compare/run_files.h"
#include "reports/compare/words.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/print.h"
#include "sim/cli/commands.h"
#include "sim/cli/judge/predicted_run.h"
#include "sim/cli/options.h"

namespace foretrace {
namespace {

struct CompareOptions {
  std::vector<std::filesystem::path> paths;
  std::string tolerance = "10%";
  std::string machine = kDefaultMachine;
  std::vector<std::string> with;
  bool all = false;
  bool strict = false;
  OutputOptions output;
};

std::string render(const Comparison& comparison, OutputFormat format) {
  switch (format) {
    case OutputFormat::Json:
      return compare_json(comparison);
    case OutputFormat::Csv:
      return compare_csv(comparison);
    case OutputFormat::Text:
      break;
  }
  return compare_text(comparison);
}

std::string render(const std::vector<Comparison>& comparisons,
                   const std::vector<std::string>& alone, OutputFormat format) {
  switch (format) {
    case OutputFormat::Json:
      return batch_json(comparisons, alone);
    case OutputFormat::Csv:
      return batch_csv(comparisons);
    case OutputFormat::Text:
      break;
  }
  return batch_text(comparisons, alone);
}

Comparison compare_pair(const TimelinePair& pair, double tolerance) {
  return compare(pair.first.timeline, pair.second.timeline, tolerance);
}

bool is_good(const Comparison& comparison, const CompareOptions& options) {
  return comparison.within() && !(options.strict && comparison.unmatched_device_spans() != 0);
}

int compare_one(const CompareOptions& options, double tolerance) {
  std::vector<Run> runs;
  for (const auto& path : options.paths)
    runs.push_back(run_of(path, options.machine, options.with));
  const TimelinePair pair = runs.size() == 1 ? pair_of(std::move(runs[0]))
                                             : pair_of(std::move(runs[0]), std::move(runs[1]));
  const Comparison comparison = compare_pair(pair, tolerance);
  emit(options.output, render(comparison, options.output.format));
  for (const std::string& doubt : doubts_of(comparison)) {
    print_error("warning: {}\n  hint: capture the script that was measured, with its arguments\n",
                doubt);
  }
  return is_good(comparison, options) ? kDone : kBadAnswer;
}

int compare_many(const CompareOptions& options, double tolerance) {
  const Batch batch = load_batch(options.paths);
  if (batch.pairs.empty()) {
    throw UsageError{
        "no prediction and measurement of one program were found below these "
        "directories"};
  }
  std::vector<Comparison> comparisons;
  for (const TimelinePair& pair : batch.pairs) {
    comparisons.push_back(compare_pair(pair, tolerance));
  }
  std::vector<std::string> alone;
  for (const auto& file : batch.alone) alone.push_back(file.string());
  emit(options.output, render(comparisons, alone, options.output.format));
  const bool good =
      std::ranges::all_of(comparisons, [&](const Comparison& c) { return is_good(c, options); });
  return good ? kDone : kBadAnswer;
}

int run_compare(const CompareOptions& options) {
  const double tolerance = parse_percent(options.tolerance, "--tolerance");
  const bool many = options.all || options.paths.size() > 2;
  return many ? compare_many(options, tolerance) : compare_one(options, tolerance);
}

}  // namespace

void add_compare_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App& command = add_subcommand(
      app, "compare", "How far predicted is from measured; exit 1 when too far",
      "foretrace compare run/ --tolerance 10%\n"
      "  foretrace compare predicted_run/ measured_run/\n"
      "  foretrace compare scenarios/examples/prefetch_two_streams.yaml measured_run/\n"
      "  foretrace compare --all runs/ reports/measured/");
  command
      .add_option("paths", options->paths,
                  "One run directory with both timelines; two (directories or timeline files) to "
                  "hold the first against the second; three or more as with --all. A scenario, or "
                  "a capture's directory, is simulated")
      ->required()
      ->option_text("RUN/ | A/ B/");
  command
      .add_option("--tolerance", options->tolerance,
                  "Regions may be off by this; always by 1.5 us or half the spread (default 10%)")
      ->option_text("PERCENT");
  add_machine_option(command, options->machine);
  add_host_option(command, options->with);
  command.add_flag("--all", options->all,
                   "Pair every prediction below the directories with every measurement of the "
                   "same program; one line per region, then the accuracy over all");
  command.add_flag("--strict", options->strict, "Device spans without a partner fail, too");
  add_output_options(command, options->output);
  command.callback([options, &exit_code] { exit_code = run_compare(*options); });
}

}  // namespace foretrace
