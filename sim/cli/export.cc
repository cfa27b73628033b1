#include <fmt/format.h>

#include <memory>
#include <sstream>

#include "reports/compare/run_files.h"
#include "reports/export/kineto_writer.h"
#include "reports/export/perfetto_writer.h"
#include "reports/export/span_csv.h"
#include "reports/timeline/write_file.h"
#include "scenarios/command_line/command.h"
#include "scenarios/text/print.h"
#include "sim/cli/commands.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

struct ExportOptions {
  fs::path run;
  std::string to;
  fs::path output;
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

void export_perfetto(const ExportOptions& options, const std::vector<const Timeline*>& timelines) {
  const fs::path file = output_or(options, "trace.pftrace");
  write_file(file, [&](std::ostream& out) { write_perfetto(timelines, out); });
  say_written(file);
}

/// One directory per origin with one file per process: what HTA and TensorBoard read.
void export_kineto(const ExportOptions& options, const std::vector<const Timeline*>& timelines) {
  const fs::path root = output_or(options, "kineto");
  for (const Timeline* timeline : timelines) {
    const fs::path directory = root / (timeline->origin.measured ? "measured" : "predicted");
    make_directory(directory);
    for (const std::uint32_t process : processes_of(*timeline)) {
      const fs::path file = directory / fmt::format("rank{}.pt.trace.json", process);
      write_file(file, [&](std::ostream& out) { write_kineto(*timeline, process, out); });
      say_written(file);
    }
  }
}

void export_csv(const ExportOptions& options, const std::vector<const Timeline*>& timelines) {
  if (options.output.empty()) {
    std::ostringstream text;
    write_span_csv(timelines, text);
    print_text(text.view());
    return;
  }
  write_file(options.output, [&](std::ostream& out) { write_span_csv(timelines, out); });
  say_written(options.output);
}

int run_export(const ExportOptions& options) {
  const Run loaded = load_run(options.run);
  const auto timelines = timelines_of(loaded);
  if (options.to == "perfetto") export_perfetto(options, timelines);
  if (options.to == "kineto") export_kineto(options, timelines);
  if (options.to == "csv") export_csv(options, timelines);
  return kDone;
}

}  // namespace

void add_export_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App& command = add_subcommand(app, "export", "A run's timelines in other tools' formats",
                                     "foretrace export run/ --to perfetto\n"
                                     "  foretrace export run/ --to kineto -o traces/\n"
                                     "  foretrace export run/ --to csv > spans.csv");
  command.add_option("run", options->run, "A run directory or a timeline file")
      ->required()
      ->option_text("RUN/");
  command
      .add_option("--to", options->to,
                  "perfetto: one .pftrace for ui.perfetto.dev; kineto: PyTorch profiler JSON, one "
                  "file per process (for HTA); csv: one row per span")
      ->required()
      ->check(CLI::IsMember({"perfetto", "kineto", "csv"}).description(""))
      ->option_text("perfetto|kineto|csv");
  command
      .add_option("-o,--output", options->output,
                  "perfetto: default RUN/trace.pftrace; kineto: directory, default RUN/kineto; "
                  "csv: default stdout")
      ->option_text("PATH");
  command.callback([options, &exit_code] { exit_code = run_export(*options); });
}

}  // namespace foretrace
