#include "reports/compare/merge.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "scenarios/command_line/command.h"
#include "sim/cli/commands.h"

namespace foretrace {
namespace {

struct Options {
  std::vector<std::filesystem::path> runs;
  std::filesystem::path output;
};

}  // namespace

void add_merge_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App& command = add_subcommand(
      app, "merge",
      "Join measurements of the same programs: the samples of all process starts, on one machine "
      "or on several",
      "foretrace merge runs-monday/ runs-tuesday/ -o runs/");
  command.add_option("runs", options->runs, "Directories with measured timelines, oldest first")
      ->required();
  command.add_option("-o,--output", options->output, "Where the joined ones go")->required();
  command.callback([options, &exit_code] {
    for (const auto& directory : merge_runs(options->runs, options->output)) {
      fmt::print("{}\n", directory.string());
    }
    exit_code = kDone;
  });
}

}  // namespace foretrace
