#include "reports/compare/merge.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "reports/compare/convert.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/print.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"

namespace foretrace {
namespace {

struct MergeOptions {
  std::vector<std::filesystem::path> runs;
  std::filesystem::path output;
  bool convert = false;
};

}  // namespace

void add_merge_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<MergeOptions>();
  CLI::App& command = add_subcommand(
      app, "merge",
      "Join measurements of the same programs: the samples of all process launches, on one machine "
      "or on several",
      "foretrace merge runs-monday/ runs-tuesday/ -o runs/");
  command.add_option("runs", options->runs, "Directories with measured timelines, oldest first")
      ->required();
  CLI::Option* output =
      command
          .add_option("-o,--output", options->output,
                      "Where the joined ones go; what cannot be joined is left out, and the exit "
                      "code is 2")
          ->check(written_directory(), "")
          ->option_text("DIR");
  command
      .add_flag("--convert", options->convert,
                "Join nothing: bring what an earlier version measured into today's form, in its "
                "place (environment.json files become environments/KEY.json)")
      ->excludes(output);
  command.callback([options, &exit_code] {
    if (options->convert) {
      for (const auto& runs : options->runs) {
        for (const auto& file : convert_runs(runs)) print_out("{}\n", file.string());
      }
      exit_code = kDone;
      return;
    }
    if (options->output.empty()) {
      throw UsageError{"merge: --output is required\n  hint: -o runs/, or --convert"};
    }
    const MergedRuns merged = merge_runs(options->runs, options->output);
    for (const std::string& why : merged.left_out) print_error("left out: {}\n", why);
    for (const auto& directory : merged.written) print_out("{}\n", directory.string());
    exit_code = merged.left_out.empty() ? kDone : kWrongUse;
  });
}

}  // namespace foretrace
