#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "reports/table/text_table.h"
#include "reports/timeline/statistics.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "sim/applications/training/measured_steps.h"
#include "sim/cli/commands.h"
#include "sim/cli/options.h"
#include "sim/cli/training/published_table.h"

namespace foretrace {
namespace {

struct TrainingTableOptions {
  std::string file;
  std::string machine = kDefaultMachine;
  std::vector<std::string> with;
  std::string only;
  OutputOptions output;
};

constexpr std::size_t kColumns = 18;
constexpr double kSlowed = 1.1;  // by the profiler: beyond, its step is another one

struct StepErrors {
  std::vector<double> time, memory;
  /// Differences of shares, where the profiler slowed little: of one rank, and of all.
  std::vector<double> exposed, idle, communication, stalled;
  std::size_t in_band = 0;
};

/// "18 of 20 within 5 points, worst 7.1, of steps that the profiler slowed by less than 10 %"
std::string points_of(const std::vector<double>& differences) {
  constexpr double kNear = 0.05;
  const auto near =
      std::ranges::count_if(differences, [](double d) { return std::abs(d) <= kNear; });
  double worst = 0;
  for (const double difference : differences) worst = std::max(worst, std::abs(difference));
  return fmt::format(
      "{} of {} within 5 points, worst {:.1f}, of steps that the profiler slowed by less than "
      "{:.0f} %",
      near, differences.size(), 100 * worst, 100 * (kSlowed - 1));
}

std::string band_words(const sim::PredictedStep& step) {
  if (!step.fits) return "-";
  return fmt::format("{:.1f} .. {:.1f}", step.seconds * step.low * 1e3,
                     step.seconds * step.high * 1e3);
}

std::string percent_of(double share) { return fmt::format("{:.0f} %", 100 * share); }

/// Which rank waits inside NCCL for the others, and which of them idles, is luck where hosts bound
/// the step.
double stalled(const sim::StepShares& shares) { return shares.waiting + shares.idle; }

void add_row(TextTable& table, const sim::MeasuredStep& measured,
             const std::optional<sim::PredictedStep>& predicted, StepErrors& errors) {
  std::vector<std::string> row{measured.id, measured.may_fit ? "fit" : "judge"};
  if (!predicted) {
    row.insert(row.end(), {"-", "-", measured.refused});
  } else if (!measured.out_of_memory && measured.seconds == 0) {  // not measured yet
    const sim::StepShares rank = predicted->of_rank(measured.traced_rank);
    const sim::StepShares mean = sim::mean_of(predicted->of_process);
    row.insert(
        row.end(),
        {"-", predicted->fits ? fmt::format("{:.2f}", predicted->seconds * 1e3) : "does not fit",
         "-", band_words(*predicted), "-", "-", percent_of(rank.idle), "-",
         percent_of(rank.exposed()), "-", percent_of(mean.communication), "-",
         percent_of(stalled(mean)), "-",
         fmt::format("{:.2f}", static_cast<double>(predicted->peak) * 1e-9), "-"});
  } else if (measured.out_of_memory || !predicted->fits) {
    const bool right = measured.out_of_memory == !predicted->fits;
    row.insert(row.end(), {measured.out_of_memory ? "out of memory" : "fits",
                           predicted->fits ? "fits" : "does not fit", right ? "right" : "wrong"});
  } else {
    const double error = predicted->seconds / measured.seconds - 1;
    const double memory =
        static_cast<double>(predicted->peak) / static_cast<double>(measured.peak) - 1;
    errors.time.push_back(error);
    const bool inside = measured.seconds >= predicted->seconds * predicted->low &&
                        measured.seconds <= predicted->seconds * predicted->high;
    errors.in_band += inside ? 1 : 0;
    errors.memory.push_back(memory);
    const bool has_trace = measured.traced_seconds > 0;
    const sim::StepShares rank = predicted->of_rank(measured.traced_rank);
    const sim::StepShares mean = sim::mean_of(predicted->of_process);
    if (has_trace && measured.traced_seconds < kSlowed * measured.seconds) {
      errors.exposed.push_back(rank.exposed() - measured.exposed);
      errors.idle.push_back(rank.idle - measured.idle);
      if (measured.shares) {
        errors.communication.push_back(mean.communication - measured.shares->communication);
        errors.stalled.push_back(stalled(mean) - stalled(*measured.shares));
      }
    }
    const auto share = [&](double traced) {
      return has_trace ? percent_of(traced) : std::string{"-"};
    };
    const auto joined = [&](auto of) {
      return measured.shares ? percent_of(of(*measured.shares)) : std::string{"-"};
    };
    row.insert(
        row.end(),
        {fmt::format("{:.2f}", measured.seconds * 1e3),
         fmt::format("{:.2f}", predicted->seconds * 1e3), fmt::format("{:+.1f} %", 100 * error),
         band_words(*predicted) + (inside ? "" : " *"),
         has_trace ? fmt::format("{:.2f}", measured.traced_seconds * 1e3) : "-",
         share(measured.idle), percent_of(rank.idle), share(measured.exposed),
         percent_of(rank.exposed()),
         joined([](const sim::StepShares& shares) { return shares.communication; }),
         percent_of(mean.communication), joined(stalled), percent_of(stalled(mean)),
         fmt::format("{:.2f}", static_cast<double>(measured.peak) * 1e-9),
         fmt::format("{:.2f}", static_cast<double>(predicted->peak) * 1e-9),
         fmt::format("{:+.1f} %", 100 * memory)});
  }
  row.resize(kColumns, "-");
  table.row(row);
}

std::string text_of(const TextTable& table, const StepErrors& judge, const StepErrors& fit) {
  std::string text = table.markdown() + "\n";
  text += fmt::format("time, judging steps: {}\n", summary_of(judge.time));
  text += fmt::format("time, fitted steps: {}\n", summary_of(fit.time));
  text += fmt::format("in their band: {} of {} judging steps, {} of {} fitted ones\n",
                      judge.in_band, judge.time.size(), fit.in_band, fit.time.size());
  text += fmt::format("memory, judging steps: {}\n", summary_of(judge.memory));
  text += fmt::format("memory, fitted steps: {}\n", summary_of(fit.memory));
  const auto add_points = [&](const char* what, std::vector<double> StepErrors::*share) {
    std::vector<double> all = judge.*share;
    all.insert(all.end(), (fit.*share).begin(), (fit.*share).end());
    if (!all.empty()) text += fmt::format("{}: {}\n", what, points_of(all));
  };
  add_points("share of exposed communication", &StepErrors::exposed);
  add_points("share of idling", &StepErrors::idle);
  add_points("mean share of communication", &StepErrors::communication);
  add_points("mean share of waiting and idling", &StepErrors::stalled);
  return text;
}

nlohmann::ordered_json shares_json(const sim::StepShares& shares) {
  return {{"computing", shares.computing},
          {"communication", shares.communication},
          {"waiting", shares.waiting},
          {"idle", shares.idle}};
}

/// What a step has: what was not measured, or is not predicted, is not there.
std::string json_of(const Machine& machine, const std::vector<sim::MeasuredStep>& steps,
                    const std::vector<std::optional<sim::PredictedStep>>& predicted) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const sim::MeasuredStep& step = steps[i];
    Json row{{"step", step.id}, {"mark", step.may_fit ? "fit" : "judge"}};
    if (step.out_of_memory) row["measured"]["out_of_memory"] = true;
    if (step.seconds > 0) {
      row["measured"] = {{"seconds", step.seconds}, {"peak_bytes", step.peak}};
      if (step.traced_seconds > 0) row["measured"]["traced_seconds"] = step.traced_seconds;
      if (step.shares) row["measured"]["shares"] = shares_json(*step.shares);
    }
    if (!predicted[i]) {
      row["refused"] = step.refused;
    } else {
      const sim::PredictedStep& one = *predicted[i];
      row["predicted"] = {{"fits", one.fits}, {"peak_bytes", one.peak}};
      if (one.fits) {
        row["predicted"]["seconds"] = one.seconds;
        row["predicted"]["low_seconds"] = one.seconds * one.low;
        row["predicted"]["high_seconds"] = one.seconds * one.high;
        row["predicted"]["shares"] = shares_json(sim::mean_of(one.of_process));
        if (step.seconds > 0) row["error"] = one.seconds / step.seconds - 1;
      }
    }
    rows.push_back(std::move(row));
  }
  const Json json{{"schema_version", 1},
                  {"kind", "training-table"},
                  {"machine", machine.name},
                  {"steps", rows}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int run_training_table(const TrainingTableOptions& options) {
  if (std::filesystem::path{options.file}.extension() == ".csv") {
    return run_published_table(options.file, options.only, options.output);
  }
  const Machine machine = changed_machine(options.machine, options.with);
  std::vector<sim::MeasuredStep> steps = sim::read_measured_steps(options.file);
  std::erase_if(steps,
                [&](const auto& step) { return step.id.find(options.only) == std::string::npos; });
  if (steps.empty()) throw UsageError{no_steps(options.file, options.only)};
  const auto predicted = sim::predict_steps(steps, machine);
  TextTable table;
  using enum TextTable::Align;
  table.column("step", Left);
  table.column("mark", Left);
  for (const char* const name : {"ms", "predicted", "error", "band", "traced ms", "idle",
                                 "predicted", "exposed", "predicted", "communication", "predicted",
                                 "waiting or idle", "predicted", "GB", "predicted", "error"}) {
    table.column(name, Right);
  }
  StepErrors fit, judge;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    add_row(table, steps[i], predicted[i], steps[i].may_fit ? fit : judge);
  }
  emit(options.output, options.output.format == OutputFormat::Json
                           ? json_of(machine, steps, predicted)
                       : options.output.format == OutputFormat::Csv ? table.csv()
                                                                    : text_of(table, judge, fit));
  return kDone;
}

}  // namespace

void add_training_table_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TrainingTableOptions>();
  CLI::App& command = add_subcommand(
      app, "training-table", "Predict training steps that PyTorch was measured in, and compare",
      "foretrace training-table reports/measured/pytorch_steps/h200_x2/results.jsonl.gz --machine "
      "h200-nvswitch-8");
  command
      .add_option("file", options->file,
                  "results.jsonl of hw/pytorch/train.py, gzip'ed or not, or a table of published "
                  "steps (reports/published/training.csv)")
      ->required();
  add_machine_option(command, options->machine);
  add_with_option(command, options->with);
  add_host_option(command, options->with);
  command.add_option("--only", options->only, "Only steps whose name has this");
  add_output_options(command, options->output);
  command.callback([options, &exit_code] { exit_code = run_training_table(*options); });
}

}  // namespace foretrace
