#include "sim/cli/training/published_table.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>

#include "reports/table/text_table.h"
#include "reports/timeline/statistics.h"
#include "scenarios/command_line/command.h"
#include "scenarios/text/print.h"
#include "sim/training/published_steps.h"

namespace foretrace {
namespace {

using sim::PublishedStep;

struct SourceErrors {
  std::vector<double> predicted, yardstick;
  std::size_t too_large = 0;  ///< said not to fit, though it ran
};

void add_published(TextTable& table, const PublishedStep& step, const sim::PredictedStep& predicted,
                   const std::optional<double>& naive, SourceErrors& errors) {
  std::vector<std::string> row{step.id, step.gpu, std::to_string(step.gpus),
                               std::string{step.quality}, fmt::format("{:.3f}", step.seconds)};
  if (predicted.fits) {
    errors.predicted.push_back(predicted.seconds / step.seconds - 1);
    row.push_back(fmt::format("{:.3f}", predicted.seconds));
    row.push_back(fmt::format("{:+.1f} %", 100 * errors.predicted.back()));
  } else {
    ++errors.too_large;
    row.insert(row.end(), {"does not fit", "wrong"});
  }
  if (naive && predicted.fits) errors.yardstick.push_back(*naive / step.seconds - 1);
  row.push_back(naive ? fmt::format("{:+.1f} %", 100 * (*naive / step.seconds - 1)) : "-");
  row.push_back(fmt::format("{:.1f}", static_cast<double>(predicted.peak) * 1e-9));
  table.row(row);
}

}  // namespace

std::string summary_of(const std::vector<double>& errors) {
  if (errors.empty()) return "no steps";
  std::vector<double> sizes;
  double sum = 0;
  for (const double error : errors) {
    sizes.push_back(std::abs(error));
    sum += error;
  }
  return fmt::format("median {:.1f} %, 90th percentile {:.1f} %, bias {:+.1f} %, {} steps",
                     100 * quantile(sizes, 0.5), 100 * quantile(sizes, 0.9),
                     100 * sum / static_cast<double>(errors.size()), errors.size());
}

int run_published_table(const std::string& file, const std::string& only) {
  const std::vector<PublishedStep> all = sim::read_published_steps(file);
  std::vector<PublishedStep> steps;
  for (const PublishedStep& step : all) {
    if (step.id.find(only) != std::string::npos) steps.push_back(step);
  }
  const auto predicted = sim::predict_published(steps);
  TextTable table;
  using enum TextTable::Align;
  table.column("step", Left);
  table.column("GPU", Left);
  for (const char* const name : {"GPUs", "quality", "s", "predicted", "error", "yardstick", "GB"}) {
    table.column(name, Right);
  }
  std::map<std::string, SourceErrors> sources;
  std::map<std::string, std::size_t> refused;
  std::map<std::string, std::vector<double>> trapped;
  std::vector<double> clean;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (predicted[i]) {
      const std::string key = fmt::format("{}, {}", steps[i].source, steps[i].gpu);
      add_published(table, steps[i], *predicted[i], yardstick(steps[i], all), sources[key]);
      if (predicted[i]->fits) {
        (steps[i].trap.empty() ? clean : trapped[steps[i].trap])
            .push_back(predicted[i]->seconds / steps[i].seconds - 1);
      }
    } else {
      const char* const where = steps[i].one_node ? "one node" : "several nodes";
      ++refused[fmt::format("{}, quality {}: {}", where, steps[i].quality, steps[i].refused)];
    }
  }
  print_out("{}\n", table.markdown());
  SourceErrors total;
  for (const auto& [name, errors] : sources) {
    print_out("{}: {}; {} wrongly too large; the yardstick {}\n", name,
              summary_of(errors.predicted), errors.too_large, summary_of(errors.yardstick));
    total.predicted.insert(total.predicted.end(), errors.predicted.begin(), errors.predicted.end());
    total.yardstick.insert(total.yardstick.end(), errors.yardstick.begin(), errors.yardstick.end());
    total.too_large += errors.too_large;
  }
  print_out("all: {}; {} wrongly too large; the yardstick {}\n", summary_of(total.predicted),
            total.too_large, summary_of(total.yardstick));
  if (!trapped.empty()) print_out("without those below: {}\n", summary_of(clean));
  for (const auto& [why, errors] : trapped) print_out("{}: {}\n", why, summary_of(errors));
  for (const auto& [why, count] : refused) print_out("not predicted, {}: {}\n", why, count);
  return kDone;
}

}  // namespace foretrace
