#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "reports/compare/run_files.h"
#include "reports/compare/run_scenario.h"
#include "reports/export/kineto_writer.h"
#include "reports/export/perfetto_writer.h"
#include "reports/export/span_csv.h"
#include "reports/export/chakra_export.h"
#include "reports/timeline/write_file.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "sim/cli/commands.h"
#include "sim/cli/judge/predicted_run.h"
#include "sim/cli/options.h"
#include "sim/cli/run_program.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

struct ExportOptions {
  fs::path run;
  std::string to;
  fs::path output;
  fs::path scenario;
  std::string machine = std::string{kDefaultMachine};
  ParameterValues parameters;
};

std::vector<const Timeline*> timelines_of(const Run& run) {
  std::vector<const Timeline*> timelines;
  for (const auto* loaded : {&run.predicted, &run.measured}) {
    if (*loaded) timelines.push_back(&(*loaded)->timeline);
  }
  return timelines;
}

/// Beside the timelines unless told otherwise.
fs::path output_or(const ExportOptions& options, const char* name) {
  if (!options.output.empty()) return options.output;
  return (fs::is_directory(options.run) ? options.run : options.run.parent_path()) / name;
}

void say_written(const fs::path& file) { print_error("wrote {}\n", file.string()); }

void export_perfetto(const ExportOptions& options, const Run& run) {
  const auto timelines = timelines_of(run);
  const fs::path file = output_or(options, "trace.pftrace");
  write_file(file, [&](std::ostream& out) { write_perfetto(timelines, out); });
  say_written(file);
}

/// One directory per origin with one file per process: what HTA and TensorBoard read.
void export_kineto(const ExportOptions& options, const Run& run) {
  const fs::path root = output_or(options, "kineto");
  for (const Timeline* timeline : timelines_of(run)) {
    const fs::path directory = root / (timeline->origin.measured ? "measured" : "predicted");
    make_directory(directory);
    for (const std::uint32_t process : processes_of(*timeline)) {
      const fs::path file = directory / fmt::format("rank{}.pt.trace.json", process);
      write_file(file, [&](std::ostream& out) { write_kineto(*timeline, process, out); });
      say_written(file);
    }
  }
}

/// One directory per origin with one file per GPU, and the ranks of its communicators, as
/// simulators of such traces take them.
void export_chakra(const ExportOptions& options, const Run& run) {
  const LoadedTimeline& any = run.predicted ? *run.predicted : *run.measured;
  const RunProgram of_run = program_of_run(any, options.scenario, options.parameters);
  std::set<std::uint32_t> simulated;
  for (const HostThread& thread : of_run.program.threads) {
    simulated.insert(thread.processes.begin(), thread.processes.end());
  }
  if (simulated.size() < of_run.program.processes) {
    throw UsageError{fmt::format(
        "{}: simulated with --one-of-each, and Chakra's traces are of all ranks\n  hint: "
        "foretrace simulate without --one-of-each",
        any.file.string())};
  }
  const fs::path root = output_or(options, "chakra");
  for (const auto* loaded : {&run.predicted, &run.measured}) {
    if (!*loaded) continue;
    const Timeline& timeline = (*loaded)->timeline;
    check_same_program(of_run.program, **loaded);
    const auto traces = interchange::chakra_of(of_run.program, timeline);
    const fs::path directory = root / (timeline.origin.measured ? "measured" : "predicted");
    make_directory(directory);
    for (std::size_t rank = 0; rank < traces.ranks.size(); ++rank) {
      write_file(directory / fmt::format("rank.{}.et", rank),
                 interchange::chakra_bytes(traces.ranks[rank]));
    }
    say_written(directory / fmt::format("rank.0.et ... rank.{}.et", traces.ranks.size() - 1));
    if (!traces.groups.empty()) {
      const fs::path groups = directory / "comm_groups.json";
      write_file(groups, nlohmann::ordered_json(traces.groups).dump(1) + "\n");
      say_written(groups);
    }
    for (const std::string& note : traces.notes) print_error("{}\n", note);
  }
}

void export_csv(const ExportOptions& options, const Run& run) {
  const auto timelines = timelines_of(run);
  if (options.output.empty()) {
    std::ostringstream text;
    write_span_csv(timelines, text);
    print_text(text.view());
    return;
  }
  write_file(options.output, [&](std::ostream& out) { write_span_csv(timelines, out); });
  say_written(options.output);
}

struct Format {
  const char* name;
  const char* what;  ///< it is, and where it goes without -o
  void (*write)(const ExportOptions& options, const Run& run);
  bool is_directory = false;
};

/// All of them: what --to takes, and what --help says of it.
constexpr std::array kFormats{
    Format{"perfetto", "one file for ui.perfetto.dev, RUN/trace.pftrace", export_perfetto},
    Format{"kineto", "PyTorch profiler JSON, one file per process (for HTA), in RUN/kineto",
           export_kineto, true},
    Format{"chakra", "Chakra execution traces (.et), one file per GPU, in RUN/chakra",
           export_chakra, true},
    Format{"csv", "one row per span, on stdout", export_csv},
};

int run_export(const ExportOptions& options) {
  const Format& format = *std::ranges::find(kFormats, options.to, &Format::name);
  if (!options.output.empty()) {
    format.is_directory ? check_can_make(options.output) : check_can_write(options.output);
  }
  format.write(options, run_of(options.run, options.machine));
  return kDone;
}

}  // namespace

void add_export_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App& command = add_subcommand(app, "export", "A run's timelines in other tools' formats",
                                     "foretrace export run/ --to perfetto\n"
                                     "  foretrace export run/ --to kineto -o traces/\n"
                                     "  foretrace export run/ --to csv > spans.csv\n"
                                     "  foretrace export scenarios/collectives/all_reduce.yaml "
                                     "--to chakra -o traces_of_ranks/");
  command
      .add_option("run", options->run,
                  "A run directory, a timeline file, or a scenario, which is simulated")
      ->required()
      ->option_text("RUN/");
  std::vector<std::string> names, meanings;
  for (const Format& format : kFormats) {
    names.emplace_back(format.name);
    meanings.push_back(fmt::format("{}: {}", format.name, format.what));
  }
  command.add_option("--to", options->to, fmt::format("{}", fmt::join(meanings, "; ")))
      ->required()
      ->check(CLI::IsMember(names).description(""))
      ->option_text(fmt::format("{}", fmt::join(names, "|")));
  command
      .add_option("-o,--output", options->output,
                  "A file, or kineto's and chakra's directory, instead of where it goes by itself")
      ->option_text("PATH");
  add_machine_option(command, options->machine);
  add_scenario_options(command, options->scenario, options->parameters);
  command.callback([options, &exit_code] { exit_code = run_export(*options); });
}

}  // namespace foretrace
