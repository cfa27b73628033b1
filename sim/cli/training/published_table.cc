#include "sim/cli/training/published_table.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "reports/table/text_table.h"
#include "reports/timeline/statistics.h"
#include "scenarios/base/command_line/command.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/base/text/print.h"
#include "sim/applications/training/layout_ranks.h"
#include "sim/applications/training/published_steps.h"

namespace foretrace {
namespace {

using sim::PublishedStep;

struct SourceErrors {
  std::vector<double> predicted, yardstick, memory;
  std::size_t too_large = 0;  ///< said not to fit, though it ran
};

void add_published(TextTable& table, const PublishedStep& step, const sim::PredictedStep& predicted,
                   const std::optional<double>& naive, SourceErrors& errors) {
  std::vector<std::string> row{step.id, step.gpu, std::to_string(step.gpus),
                               std::string{step.quality}, fmt::format("{:.3f}", step.seconds)};
  const double error = predicted.seconds / step.seconds - 1;
  if (predicted.fits) {
    errors.predicted.push_back(error);
  } else {
    ++errors.too_large;
  }
  row.push_back(fmt::format("{:.3f}{}", predicted.seconds, predicted.fits ? "" : ", does not fit"));
  row.push_back(fmt::format("{:+.1f} %", 100 * error));
  if (naive && predicted.fits) errors.yardstick.push_back(*naive / step.seconds - 1);
  row.push_back(naive ? fmt::format("{:+.1f} %", 100 * (*naive / step.seconds - 1)) : "-");
  const auto peak = static_cast<double>(predicted.peak);
  row.push_back(fmt::format("{:.1f}", peak * 1e-9));
  row.push_back(step.peak > 0 ? fmt::format("{:.1f}", step.peak * 1e-9) : "-");
  if (step.peak > 0) errors.memory.push_back(peak / step.peak - 1);
  table.row(row);
}

/// Of a step that is not predicted. What a simulation says of its groups stands on stderr.
std::string refusal_of(const PublishedStep& step) {
  return step.refused.empty() ? "a group that is not spread evenly over nodes" : step.refused;
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

namespace {

std::vector<sim::LayoutTrial> trials_of(
    const std::vector<PublishedStep>& steps,
    const std::vector<std::optional<sim::PredictedStep>>& predicted) {
  std::vector<sim::LayoutTrial> trials;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const PublishedStep& step = steps[i];
    if (!predicted[i]) continue;
    trials.push_back({step.model, step.id, step.seconds / step.sequences,
                      predicted[i]->seconds / step.sequences});
  }
  return trials;
}

std::string published_json(const std::vector<PublishedStep>& steps,
                           const std::vector<std::optional<sim::PredictedStep>>& predicted,
                           const std::vector<PublishedStep>& all) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const PublishedStep& step = steps[i];
    Json row{{"step", step.id},         {"source", step.source},
             {"gpu", step.gpu},         {"gpus", step.gpus},
             {"machine", step.machine}, {"quality", std::string{step.quality}},
             {"seconds", step.seconds}};
    if (!step.trap.empty()) row["software"] = step.trap;
    if (!step.read_as.empty()) row["read_as"] = step.read_as;
    if (!step.assumed.empty()) row["assumed"] = step.assumed;
    if (!predicted[i]) {
      row["refused"] = refusal_of(step);
    } else {
      row["fits"] = predicted[i]->fits;
      row["peak_bytes"] = predicted[i]->peak;
      if (step.peak > 0) row["published_peak_bytes"] = step.peak;
      row["predicted_seconds"] = predicted[i]->seconds;
      row["error"] = predicted[i]->seconds / step.seconds - 1;
    }
    if (const auto naive = yardstick(step, all)) row["yardstick_seconds"] = *naive;
    rows.push_back(std::move(row));
  }
  Json layouts = Json::array();
  for (const sim::LayoutRanks& ranks : sim::layout_ranks(trials_of(steps, predicted))) {
    layouts.push_back({{"group", ranks.group},
                       {"layouts", ranks.layouts},
                       {"rank_correlation", ranks.correlation},
                       {"chosen", ranks.chosen},
                       {"best", ranks.best},
                       {"excess", ranks.excess}});
  }
  const Json json{
      {"schema_version", 1}, {"kind", "published-steps"}, {"steps", rows}, {"layouts", layouts}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string no_steps(const std::string& file, const std::string& only) {
  return only.empty() ? file + ": no step in it"
                      : fmt::format("--only: no step of {} has '{}' in its name", file, only);
}

int run_published_table(const std::string& file, const std::string& only,
                        const OutputOptions& output) {
  const std::vector<PublishedStep> all = sim::read_published_steps(file);
  std::vector<PublishedStep> steps;
  for (const PublishedStep& step : all) {
    if (step.id.find(only) != std::string::npos) steps.push_back(step);
  }
  if (steps.empty()) throw UsageError{no_steps(file, only)};
  const auto predicted = sim::predict_published(steps);
  TextTable table;
  using enum TextTable::Align;
  table.column("step", Left);
  table.column("GPU", Left);
  for (const char* const name :
       {"GPUs", "quality", "s", "predicted", "error", "yardstick", "GB", "published GB"}) {
    table.column(name, Right);
  }
  std::map<std::string, SourceErrors> sources;
  std::map<std::string, std::size_t> refused;
  std::map<std::string, std::vector<double>> trapped, as_others;
  std::vector<double> clean;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (predicted[i]) {
      const std::string key = fmt::format("{}, {}", steps[i].source, steps[i].gpu);
      add_published(table, steps[i], *predicted[i], yardstick(steps[i], all), sources[key]);
      if (predicted[i]->fits) {
        (steps[i].trap.empty() ? clean : trapped[steps[i].trap])
            .push_back(predicted[i]->seconds / steps[i].seconds - 1);
        if (!steps[i].read_as.empty()) {
          as_others[fmt::format("{}: read as {}", steps[i].source, steps[i].read_as)].push_back(
              predicted[i]->seconds / steps[i].seconds - 1);
        }
        if (!steps[i].assumed.empty()) {
          as_others[fmt::format("{}: assumed is {}", steps[i].source, steps[i].assumed)].push_back(
              predicted[i]->seconds / steps[i].seconds - 1);
        }
      }
    } else {
      const char* const where = steps[i].one_node ? "one node" : "several nodes";
      ++refused[fmt::format("{}, quality {}: {}", where, steps[i].quality, refusal_of(steps[i]))];
    }
  }
  if (output.format != OutputFormat::Text) {
    emit(output,
         output.format == OutputFormat::Csv ? table.csv() : published_json(steps, predicted, all));
    return kDone;
  }
  std::string text = table.markdown() + "\n";
  const auto say = [&text](fmt::string_view format, const auto&... words) {
    text += fmt::vformat(format, fmt::make_format_args(words...));
  };
  SourceErrors total;
  for (const auto& [name, errors] : sources) {
    say("{}: {}; {} wrongly too large; the yardstick {}\n", name, summary_of(errors.predicted),
        errors.too_large, summary_of(errors.yardstick));
    total.predicted.insert(total.predicted.end(), errors.predicted.begin(), errors.predicted.end());
    total.yardstick.insert(total.yardstick.end(), errors.yardstick.begin(), errors.yardstick.end());
    total.too_large += errors.too_large;
    total.memory.insert(total.memory.end(), errors.memory.begin(), errors.memory.end());
    if (!errors.memory.empty()) say("{}, memory: {}\n", name, summary_of(errors.memory));
  }
  say("all: {}; {} wrongly too large; the yardstick {}\n", summary_of(total.predicted),
      total.too_large, summary_of(total.yardstick));
  if (!total.memory.empty()) say("all, memory: {}\n", summary_of(total.memory));
  if (!trapped.empty()) say("without those below: {}\n", summary_of(clean));
  for (const auto& [why, errors] : trapped) say("{}: {}\n", why, summary_of(errors));
  for (const auto& [how, errors] : as_others) say("{}: {}\n", how, summary_of(errors));
  for (const sim::LayoutRanks& ranks : sim::layout_ranks(trials_of(steps, predicted))) {
    say("{}: {} layouts, rank correlation {:.2f}; chosen {}, {:+.1f} % of the best measured, {}\n",
        ranks.group, ranks.layouts, ranks.correlation, ranks.chosen, 100 * ranks.excess,
        ranks.best);
  }
  for (const auto& [why, count] : refused) say("not predicted, {}: {}\n", why, count);
  emit(output, text);
  return kDone;
}

}  // namespace foretrace
