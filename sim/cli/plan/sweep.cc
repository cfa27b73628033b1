#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "models/what_if/what_if.h"
#include "reports/timeline/write_file.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/read/scenario.h"
#include "scenarios/base/text/is_text.h"
#include "scenarios/base/text/print.h"
#include "scenarios/base/text/text_file.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"
#include "sim/environment_check.h"
#include "sim/applications/sweep/page.h"
#include "sim/applications/sweep/run.h"
#include "sim/applications/sweep/table.h"
#include "sim/applications/sweep/written_row.h"

namespace foretrace {
namespace {

struct SweepOptions {
  std::string file;
  std::string machines = kDefaultMachine;
  std::vector<std::string> sets, withs;
  Fidelity fidelity = Fidelity::Flow;
  std::optional<std::size_t> jobs;
  std::vector<std::string> against;
  std::uint32_t patience_s = 60;
  std::filesystem::path rows, csv, page;
};

std::vector<sweep::Axis> axes_of(const SweepOptions& options) {
  std::vector<sweep::Axis> axes{sweep::machine_axis(options.machines)};
  for (const std::string& text : options.sets) {
    axes.push_back(sweep::parse_axis(sweep::Kind::Set, text, "--set"));
  }
  for (const std::string& text : options.withs) {
    axes.push_back(sweep::parse_axis(sweep::Kind::With, text, "--with"));
  }
  return axes;
}

/// A mistake in an axis is one error before anything runs, not one in each row.
void check_machines(const std::vector<sweep::Axis>& axes) {
  for (const std::string& name : axes.front().values) {
    const Machine machine = load_machine(name);
    for (const sweep::Axis& axis : axes) {
      if (axis.kind != sweep::Kind::With) continue;
      for (const std::string& value : axis.values) {
        Machine changed = machine;
        apply_what_ifs(changed, {axis.name + "=" + value});
      }
    }
  }
}

/// One line that is written over, on a terminal only.
class ProgressLine {
 public:
  explicit ProgressLine(std::size_t done) : at_first_{done} {}
  void show(std::size_t done, std::size_t all) {
    if (::isatty(STDERR_FILENO) == 0) return;
    const std::chrono::duration<double> past = std::chrono::steady_clock::now() - begin_;
    const double each = past.count() / static_cast<double>(done - at_first_);
    print_error("\r{} of {} points, {:.0f} s left ", done, all,
                each * static_cast<double>(all - done));
    if (done == all) print_error("\n");
  }

 private:
  std::size_t at_first_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// The rows are JSON, which holds nothing else.
void check_is_utf8(const SweepOptions& options) {
  std::vector<std::string> texts{options.file, options.machines};
  for (const auto* more : {&options.sets, &options.withs, &options.against}) {
    texts.insert(texts.end(), more->begin(), more->end());
  }
  for (const std::string& text : texts) {
    Problems problems{"command line"};
    if (is_text(text, problems)) continue;
    throw UsageError{fmt::format("'{}' is not UTF-8 text, which the rows of a sweep are", text)};
  }
}

/// The settings that no point follows: once, as the first point has them.
void warn_of_settings(const sweep::Sweep& sweep, const sweep::Point& first) {
  const auto read = read_scenario(sweep.text, sweep.file, first.parameters(sweep.axes));
  if (read) print_error("{}", render(unmodelled_settings(read->program), sweep.text));
}

int run_sweep(const SweepOptions& options) {
  check_is_utf8(options);
  const sweep::Sweep sweep{options.file, self_contained(read_text_file(options.file), options.file),
                           axes_of(options), options.fidelity};
  check_machines(sweep.axes);
  check_outputs({options.rows, options.csv, options.page});
  const std::vector<sweep::Point> points = sweep::points_of(sweep.axes);
  const sweep::Against against{sweep.axes, options.against};
  const sweep::Share share = sweep::share_of_environment();
  sweep::Ledger ledger{options.rows, sweep, points.size(), share};
  const std::size_t before = ledger.done().size();
  if (before > 0 && share.rank == 0) {
    print_error("note: {} of {} points were done\n", before, points.size());
  }
  if (share.rank == 0) warn_of_settings(sweep, points.front());
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  ProgressLine line{before};
  sweep::run(sweep, points, share, options.jobs.value_or(share.size > 1 ? 1 : cores), ledger,
             [&](std::size_t done, std::size_t all) { line.show(done, all); });
  if (share.rank > 0) return kDone;
  const auto rows = ledger.finish(against, std::chrono::seconds{options.patience_s});
  if (!options.csv.empty()) write_file(options.csv, sweep::csv_of(rows));
  if (!options.page.empty()) write_file(options.page, sweep::page_of(sweep, rows));
  const auto failed =
      std::ranges::count_if(rows, [](const auto& row) { return row.contains("error"); });
  print_out("{} point{}, {} of them failed: {}\n", rows.size(), rows.size() == 1 ? "" : "s", failed,
            options.rows.string());
  if (failed == 0) return kDone;
  const auto first =
      std::ranges::find_if(rows, [](const auto& row) { return row.contains("error"); });
  print_error("the first that failed: {}\n", first->at("error").get<std::string>());
  const auto may_pass =
      std::ranges::count_if(rows, [](const auto& row) { return row.contains(sweep::kTries); });
  if (may_pass > 0) {
    print_error("  hint: {} of them may pass: the same command tries {} again\n", may_pass,
                may_pass == 1 ? "it" : "them");
    return kBroke;
  }
  return std::cmp_equal(failed, rows.size()) ? kWrongUse : kDone;
}

}  // namespace

void add_sweep_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<SweepOptions>();
  CLI::App& command =
      add_subcommand(app, "sweep", "Predict a scenario for every combination of values",
                     "foretrace sweep scenarios/nccl/all_reduce.yaml --set large=1MiB..64MiB:x4 "
                     "--set ranks=2,8 --with nvlink=1x,0.5x -o sweep.jsonl --csv sweep.csv");
  command.add_option("file", options->file, "Scenario file")->required();
  command.add_option("-m,--machine", options->machines, "Machine models, with commas between")
      ->capture_default_str();
  const auto axes = [&](const char* flag, std::vector<std::string>& to, const char* text) {
    command.add_option(flag, to, text)->type_name("NAME=VALUES")->allow_extra_args(false);
  };
  axes("--set", options->sets,
       "Values of a parameter of the scenario: 2,4,8 or 8MiB..512MiB:x2 or 1..9:+2; may be "
       "repeated");
  axes("--with", options->withs, "What-ifs, as simulate's: nvlink=1x,0.5x; may be repeated");
  add_fidelity_option(command, options->fidelity);
  command
      .add_option("-j,--jobs", options->jobs,
                  "Points at once (default: as many as cores; under mpirun or srun, which deal the "
                  "points out, one for each process)")
      ->check(CLI::Range(1, 1024).description(""));
  command
      .add_option("--wait", options->patience_s,
                  "Seconds that the first process waits for another one that does not run")
      ->check(CLI::Range(1, 86'400).description(""))
      ->capture_default_str();
  command
      .add_option("-o,--output", options->rows,
                  "A JSON line for each point, on the disk once it is done. When it exists, the "
                  "sweep goes on where it was stopped")
      ->required()
      ->check(written_file(), "");
  command.add_option("--csv", options->csv, "The same as a table, when all is done")
      ->check(written_file(), "");
  command.add_option("--page", options->page, "The same as an HTML page with curves")
      ->check(written_file(), "")
      ->option_text("FILE");
  axes("--against", options->against,
       "Compare each point with the one that has this value and else its own: nvlink=1x; default: "
       "with the first point. The ratio's band is narrower than the two times' bands, which share "
       "the machine");
  command.callback([options, &exit_code] { exit_code = run_sweep(*options); });
}

}  // namespace foretrace
