#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <sstream>

#include "reports/calls/join_calls.h"
#include "reports/compare/run_files.h"
#include "reports/page/html_report.h"
#include "reports/page/lanes_svg.h"
#include "reports/timeline/origin.h"
#include "reports/timeline/write_file.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/print.h"
#include "scenarios/base/text/text_file.h"
#include "scenarios/read/scenario.h"
#include "sim/cli/commands.h"
#include "sim/cli/judge/predicted_run.h"
#include "sim/cli/options.h"
#include "sim/cli/plan/explained.h"
#include "sim/cli/training/step_facts.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

struct ReportOptions {
  std::vector<fs::path> runs;
  fs::path output;
  fs::path svg;
  std::int64_t svg_until_ns = 0;
  std::string tolerance = "10%";
  bool explain = false;
  ExplainedWith explained_with;

  std::string machine_of_scenarios() const {
    return explained_with.machine.empty() ? kDefaultMachine : explained_with.machine;
  }
};

/// One or two timelines of one program.
struct Shown {
  LoadedTimeline first;
  std::optional<LoadedTimeline> second;
};

/// Every run's own pair; then the lonely predictions with the lonely measurements of their program;
/// then what stays alone.
std::vector<Shown> pair_up(std::vector<Run> runs) {
  std::vector<Shown> shown;
  for (Run& run : runs) {
    if (run.predicted && run.measured) {
      shown.push_back({std::move(*run.predicted), std::move(run.measured)});
      run.predicted.reset();
      run.measured.reset();
    }
    if (!run.predicted) continue;
    std::optional<LoadedTimeline> partner;
    for (Run& other : runs) {
      if (partner || other.predicted || !other.measured) continue;
      const Timeline& measured = other.measured->timeline;
      if (is_measured_step(measured) ||
          measured.origin.program_hash == run.predicted->timeline.origin.program_hash) {
        partner.swap(other.measured);
      }
    }
    shown.push_back({std::move(*run.predicted), std::move(partner)});
    run.predicted.reset();
  }
  for (Shown& one : shown) {
    if (!one.second || !is_measured_step(one.second->timeline)) continue;
    JoinedStep joined = join_calls(one.first.timeline, one.second->timeline);
    one.first.timeline = std::move(joined.predicted);
    one.second->timeline = std::move(joined.measured);
  }
  for (Run& run : runs) {
    if (run.measured) shown.push_back({std::move(*run.measured), std::nullopt});
  }
  return shown;
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in{text};
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The scenario's text, when it is found and its operations are where the timeline says.
std::vector<std::string> source_of(const LoadedTimeline& loaded) {
  const Origin& origin = loaded.timeline.origin;
  for (const fs::path& file : {fs::path{origin.file}, data_directory() / origin.file,
                               loaded.file.parent_path() / fs::path{origin.file}.filename()}) {
    const auto text = read_plain_file(file, kLargestText);
    if (!text) continue;
    if (loaded.timeline.serving) {
      const auto serving = read_serving_scenario(*text, file.string());
      if (serving && serving->serving.name == origin.scenario) return split_lines(*text);
      continue;
    }
    const auto read = read_scenario(*text, file.string());
    if (!read) continue;
    const auto rows = op_rows(read->program);
    const auto& ops = loaded.timeline.ops;
    if (std::equal(
            rows.begin(), rows.end(), ops.begin(), ops.end(),
            [](const OpRow& a, const OpRow& b) { return a.kind == b.kind && a.line == b.line; })) {
      return split_lines(*text);
    }
  }
  return {};
}

/// Nothing happened in it: what a timeline without a partner is held against.
Timeline nothing_of(const Timeline& timeline) {
  Timeline empty;
  empty.origin.program_hash = timeline.origin.program_hash;
  empty.origin.measured = !timeline.origin.measured;
  empty.outcome.kind = timeline.outcome.kind;
  empty.ops = timeline.ops;
  return empty;
}

ReportRun report_run(const Shown& shown, double tolerance) {
  const Timeline& first = shown.first.timeline;
  ReportRun run;
  run.where = shown.first.file.parent_path().string();
  run.source = source_of(shown.first);
  run.comparison =
      compare(first, shown.second ? shown.second->timeline : nothing_of(first), tolerance);
  run.sides.push_back({&first, run.comparison.first_name});
  if (shown.second) run.sides.push_back({&shown.second->timeline, run.comparison.second_name});
  return run;
}

/// What a row costs: the difference where there are two sides, else the time; host calls last.
double weight_of(const OperationRow& row, bool two) {
  if (two) return row.part == 0 ? -1 : std::abs(row.total_difference_ns);
  const auto times = static_cast<double>(row.matched + row.only_first + row.only_second);
  return (row.part == 0 ? 1e-9 : 1) * times * row.first_ns.value_or(row.second_ns.value_or(0));
}

/// A page opens whatever the run is: it has the rows that tell most, and says how many it has not.
/// All of them are in the sums, and in what compare and export write.
void leave_out_rows(ReportRun& run) {
  constexpr std::size_t kMost = 400, kMostLines = 2'000;
  const bool two = run.sides.size() == 2;
  Comparison& c = run.comparison;
  if (c.operations.size() > kMost) {
    std::ranges::stable_sort(c.operations, std::ranges::greater{},
                             [&](const OperationRow& row) { return weight_of(row, two); });
    run.left_out = c.operations.size() - kMost;
    c.operations.resize(kMost);
  }
  if (c.overlaps.size() > kMost) {
    std::stable_partition(c.overlaps.begin(), c.overlaps.end(),
                          [](const OverlapRow& row) { return row.differs; });
    run.left_out_overlaps = c.overlaps.size() - kMost;
    c.overlaps.resize(kMost);
  }
  if (c.regions.size() > kMost) {
    std::ranges::stable_sort(c.regions, std::ranges::greater{}, [](const RegionRow& row) {
      return row.error ? std::abs(*row.error) : 0;
    });
    run.left_out_regions = c.regions.size() - kMost;
    c.regions.resize(kMost);
  }
  if (run.source.size() > kMostLines) {
    run.left_out_lines = run.source.size() - kMostLines;
    run.source.resize(kMostLines);
  }
}

void add_causes(ReportRun& run, const Shown& shown, const ExplainedWith& with) {
  const explain::Explanation why = explained(shown.first, shown.first, with);
  run.causes_headline = explain::headline_of(why);
  if (!why.rests_on_text.empty()) run.causes_headline += ". " + why.rests_on_text;
  for (const explain::Gain& gain : why.gains) {
    run.causes.push_back({std::string{name_of(gain.cause)}, std::string{change_of(gain.cause)},
                          gain.seconds, gain.gain});
  }
}

void write_svg(const ReportOptions& options, const ReportRun& run) {
  const fs::path& file = options.svg;
  LayoutLimits limits;
  limits.until_ns = options.svg_until_ns;
  const auto picture = draw_lanes(run.sides, limits, SvgUse::Standalone, "lanes",
                                  run.comparison.first_origin.scenario);
  write_file(file, picture.svg);
  print_error("wrote {}\n", file.string());
  if (!picture.note.empty()) print_error("{}\n", picture.note);
}

fs::path report_file(const ReportOptions& options) {
  if (!options.output.empty()) return options.output;
  if (options.runs.size() > 1) throw UsageError{"with several runs, say where: -o report.html"};
  const fs::path& run = options.runs.front();
  return (fs::is_directory(run) ? run : run.parent_path()) / "report.html";
}

/// The runs that can be read. One alone must be; of several, the others are listed in the page.
std::vector<Run> load_runs(const std::vector<fs::path>& paths, const std::string& machine,
                           const std::vector<std::string>& with, std::vector<UnreadRun>& unread) {
  std::vector<Run> loaded;
  for (const fs::path& path : paths) {
    try {
      loaded.push_back(run_of(path, machine, with));
    } catch (const UsageError& error) {
      if (paths.size() == 1) throw;
      print_error("{}\n", error.what());
      unread.push_back({path.string(), error.what()});
    }
  }
  if (loaded.empty()) throw UsageError{"none of the runs can be read"};
  return loaded;
}

int run_report(const ReportOptions& options) {
  const double tolerance = parse_percent(options.tolerance, "--tolerance");
  std::vector<UnreadRun> unread;
  const std::vector<Shown> shown = pair_up(
      load_runs(options.runs, options.machine_of_scenarios(), options.explained_with.with, unread));
  std::vector<ReportRun> runs;
  for (const Shown& one : shown) {
    try {
      ReportRun run = report_run(one, tolerance);
      if (shown.size() == 1) run.step = step_facts(one.first);
      leave_out_rows(run);
      if (options.explain) add_causes(run, one, options.explained_with);
      runs.push_back(std::move(run));
    } catch (const UsageError& error) {
      if (shown.size() == 1) throw;
      print_error("{}\n", error.what());
      unread.push_back({one.first.file.parent_path().string(), error.what()});
    }
  }
  if (runs.empty()) throw UsageError{"none of the runs can be compared"};
  const bool only_svg = !options.svg.empty() && options.output.empty();
  check_outputs({options.svg, only_svg ? fs::path{} : report_file(options)});
  if (!options.svg.empty()) {
    if (runs.size() > 1) throw UsageError{"--svg draws one run"};
    write_svg(options, runs.front());
    if (options.output.empty()) return kDone;
  }
  const fs::path file = report_file(options);
  const std::string html = html_report(runs, unread);
  write_file(file, html);
  print_error("wrote {}: {} run{}, {} KiB{}\n", file.string(), runs.size(),
              runs.size() == 1 ? "" : "s", html.size() / 1024,
              unread.empty() ? "" : fmt::format("; {} could not be read", unread.size()));
  return unread.empty() ? kDone : kWrongUse;
}

}  // namespace

void add_report_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App& command =
      add_subcommand(app, "report", "One self-contained HTML page of one or several runs",
                     "foretrace report run/ -o report.html\n"
                     "  foretrace report predicted_run/ measured_run/ -o report.html\n"
                     "  foretrace report run/ --svg timelines.svg --svg-until 40ms");
  command
      .add_option("runs", options->runs,
                  "Run directories or timeline files; a prediction and a measurement of the same "
                  "program are shown together")
      ->required()
      ->option_text("RUN/...");
  command
      .add_option("-o,--output", options->output, "The page; default: RUN/report.html for one run")
      ->check(written_file({".html", ".htm"}), "")
      ->option_text("FILE");
  command.add_option("--svg", options->svg, "Write the timeline picture alone, for a README")
      ->check(written_file({".svg"}), "")
      ->option_text("FILE");
  const std::map<std::string, std::int64_t> units{
      {"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
  command.add_option("--svg-until", options->svg_until_ns, "Draw only the run's first TIME: 40ms")
      ->transform(
          CLI::AsNumberWithUnit(units, CLI::AsNumberWithUnit::UNIT_REQUIRED).description(""))
      ->check(
          [](const std::string& ns) {
            const bool is_after_0 = ns.find_first_of("123456789") == 0;
            return std::string{is_after_0 ? "" : "a time of more than 0 is needed: 40ms"};
          },
          "")
      ->option_text("TIME");
  command.add_option("--tolerance", options->tolerance, "As for compare (default 10%)")
      ->option_text("PERCENT");
  command.add_flag("--explain", options->explain,
                   "Simulate each run without one cause after the other, as foretrace explain "
                   "does, and say what each costs");
  command.add_option("-m,--machine", options->explained_with.machine,
                     "Machine model for --explain, and to simulate a capture on; default: that of "
                     "the run's prediction, for a capture the default of simulate");
  add_host_option(command, options->explained_with.with);
  command.callback([options, &exit_code] { exit_code = run_report(*options); });
}

}  // namespace foretrace
