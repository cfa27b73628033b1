#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "reports/compare/run_files.h"
#include "reports/export/kineto_writer.h"
#include "reports/export/perfetto_writer.h"
#include "reports/export/span_csv.h"
#include "reports/timeline/write_file.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/print.h"
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

struct Format {
  const char* name;
  const char* what;  ///< it is, and where it goes without -o
  void (*write)(const ExportOptions& options, const std::vector<const Timeline*>& timelines);
};

/// All of them: what --to takes, and what --help says of it.
constexpr std::array kFormats{
    Format{"perfetto", "one file for ui.perfetto.dev, RUN/trace.pftrace", export_perfetto},
    Format{"kineto", "PyTorch profiler JSON, one file per process (for HTA), in RUN/kineto",
           export_kineto},
    Format{"csv", "one row per span, on stdout", export_csv},
};

int run_export(const ExportOptions& options) {
  if (!options.output.empty()) {
    options.to == "kineto" ? check_can_make(options.output) : check_can_write(options.output);
  }
  const Run loaded = load_run(options.run);
  std::ranges::find(kFormats, options.to, &Format::name)->write(options, timelines_of(loaded));
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
                  "A file, or kineto's directory, instead of where it goes by itself")
      ->option_text("PATH");
  command.callback([options, &exit_code] { exit_code = run_export(*options); });
}

}  // namespace foretrace
