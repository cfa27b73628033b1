#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "models/machine/machine.h"
#include "reports/table/text_table.h"
#include "scenarios/command_line/command.h"
#include "scenarios/text/print.h"
#include "sim/cli/commands.h"
#include "sim/training/measured_steps.h"

namespace foretrace {
namespace {

struct TrainingTableOptions {
  std::string file;
  std::string machine = "h200-nvswitch-8";
  std::string only;
};

struct StepErrors {
  std::vector<double> time, memory;
};

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double place = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (values[high] - values[low]) * (place - static_cast<double>(low));
}

/// "median 3.1 %, 90th percentile 9.0 %, bias -0.4 %, 24 steps"
std::string summary_of(const std::vector<double>& errors) {
  std::vector<double> sizes;
  double sum = 0;
  for (const double error : errors) {
    sizes.push_back(std::abs(error));
    sum += error;
  }
  return fmt::format("median {:.1f} %, 90th percentile {:.1f} %, bias {:+.1f} %, {} steps",
                     100 * quantile(sizes, 0.5), 100 * quantile(sizes, 0.9),
                     100 * sum / static_cast<double>(std::max<std::size_t>(1, errors.size())),
                     errors.size());
}

void add_row(TextTable& table, const sim::MeasuredStep& measured,
             const std::optional<sim::PredictedStep>& predicted, StepErrors& errors) {
  std::vector<std::string> row{measured.id, measured.may_fit ? "fit" : "judge"};
  if (!predicted) {
    row.insert(row.end(), {"-", "-", measured.refused, "-", "-", "-", "-", "-", "-"});
  } else if (measured.out_of_memory || !predicted->fits) {
    const bool right = measured.out_of_memory == !predicted->fits;
    row.insert(row.end(), {measured.out_of_memory ? "out of memory" : "fits",
                           predicted->fits ? "fits" : "does not fit", right ? "right" : "wrong",
                           "-", "-", "-", "-", "-", "-"});
  } else {
    const double error = predicted->seconds / measured.seconds - 1;
    const double memory =
        static_cast<double>(predicted->peak) / static_cast<double>(measured.peak) - 1;
    errors.time.push_back(error);
    errors.memory.push_back(memory);
    row.insert(
        row.end(),
        {fmt::format("{:.2f}", measured.seconds * 1e3),
         fmt::format("{:.2f}", predicted->seconds * 1e3), fmt::format("{:+.1f} %", 100 * error),
         fmt::format("{:.0f} %", 100 * predicted->idle),
         measured.exposed < 0 ? "-" : fmt::format("{:.0f} %", 100 * measured.exposed),
         fmt::format("{:.0f} %", 100 * predicted->exposed),
         fmt::format("{:.2f}", static_cast<double>(measured.peak) * 1e-9),
         fmt::format("{:.2f}", static_cast<double>(predicted->peak) * 1e-9),
         fmt::format("{:+.1f} %", 100 * memory)});
  }
  table.row(row);
}

int run_training_table(const TrainingTableOptions& options) {
  const Machine machine = load_machine(options.machine);
  std::vector<sim::MeasuredStep> steps = sim::read_measured_steps(options.file);
  std::erase_if(steps,
                [&](const auto& step) { return step.id.find(options.only) == std::string::npos; });
  const auto predicted = sim::predict_steps(steps, machine);
  TextTable table;
  using enum TextTable::Align;
  table.column("step", Left);
  table.column("mark", Left);
  for (const char* const name :
       {"ms", "predicted", "error", "idle", "exposed", "predicted", "GB", "predicted", "error"}) {
    table.column(name, Right);
  }
  StepErrors fit, judge;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    add_row(table, steps[i], predicted[i], steps[i].may_fit ? fit : judge);
  }
  print_out("{}\n", table.markdown());
  print_out("time, judging steps: {}\n", summary_of(judge.time));
  print_out("time, fitted steps: {}\n", summary_of(fit.time));
  print_out("memory, judging steps: {}\n", summary_of(judge.memory));
  print_out("memory, fitted steps: {}\n", summary_of(fit.memory));
  return kDone;
}

}  // namespace

void add_training_table_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TrainingTableOptions>();
  CLI::App& command = add_subcommand(
      app, "training-table", "Predict training steps that PyTorch was measured in, and compare",
      "foretrace training-table reports/measured/pytorch_steps/h200_x2/results.jsonl --machine "
      "h200-nvswitch-8");
  command.add_option("file", options->file, "results.jsonl of hw/pytorch/train.py")->required();
  command.add_option("-m,--machine", options->machine, "Machine model: a name or a .yaml file")
      ->capture_default_str();
  command.add_option("--only", options->only, "Only steps whose name has this");
  command.callback([options, &exit_code] { exit_code = run_training_table(*options); });
}

}  // namespace foretrace
