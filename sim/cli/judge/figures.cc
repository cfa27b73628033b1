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
#include "scenarios/base/command_line/command.h"
#include "scenarios/read/scenario.h"
#include "scenarios/base/text/data_directory.h"
#include "sim/cli/commands.h"
#include "sim/cli/judge/predict_all.h"
#include "sim/cli/judge/published_figures.h"
#include "sim/cli/options.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

struct FigureOptions {
  fs::path table;
  std::string machine = kDefaultMachine;
  std::vector<std::string> with;
  std::string tolerance = "10%";
  OutputOptions output;
};

/// Beside the caller, or where foretrace's own files are.
std::string scenario_file(const std::string& name) { return shipped_file(name).string(); }

void predict(std::vector<PublishedFigure>& figures, const FigureOptions& options) {
  std::vector<std::string> names;
  std::vector<Program> programs;
  for (const PublishedFigure& figure : figures) {
    if (std::ranges::find(names, figure.scenario) != names.end()) continue;
    names.push_back(figure.scenario);
    programs.push_back(load_scenario(scenario_file(figure.scenario), {}));
  }
  const auto predictions = predict_all(programs, changed_machine(options.machine, options.with));
  for (PublishedFigure& figure : figures) {
    const auto at = std::ranges::find(names, figure.scenario) - names.begin();
    const auto& prediction = predictions[static_cast<std::size_t>(at)];
    if (!prediction) {
      throw UsageError{fmt::format("{}: {} cannot run it", figure.scenario, options.machine)};
    }
    for (const RegionSamples& region : prediction->regions.regions) {
      if (region.name != figure.region) continue;
      figure.predicted_ns =
          std::max(figure.predicted_ns, static_cast<double>(region.samples_ns.front()) /
                                            static_cast<double>(region.per));
      figure.learned = figure.learned || !region.learned_by.empty();
    }
    if (figure.predicted_ns == 0) {
      throw UsageError{fmt::format("{}: {} has no region '{}'", options.table.string(),
                                   figure.scenario, figure.region)};
    }
  }
}

/// Predictions that are so near each other are equal: two runs of the same kernels.
constexpr double kTie = 0.01;

/// Pairs of one set that are further apart than the tolerance, and come in the other order.
std::vector<std::string> turned_round(const std::vector<PublishedFigure>& figures,
                                      double tolerance) {
  std::vector<std::string> pairs;
  for (const PublishedFigure& a : figures) {
    for (const PublishedFigure& b : figures) {
      const bool is_less = a.set == b.set && a.published_ns * (1 + tolerance) < b.published_ns;
      if (!is_less || a.predicted_ns <= b.predicted_ns * (1 + kTie)) continue;
      pairs.push_back(
          fmt::format("{}: {} is predicted to take longer than {}", a.set, a.name, b.name));
    }
  }
  return pairs;
}

TextTable table_of(const std::vector<PublishedFigure>& figures, double tolerance) {
  using enum TextTable::Align;
  TextTable table;
  for (const char* heading : {"set", "figure", "region"}) table.column(heading, Left);
  for (const char* heading : {"published", "predicted", "error"}) table.column(heading, Right);
  for (const char* heading : {"standing", "verdict"}) table.column(heading, Left);
  for (const PublishedFigure& figure : figures) {
    table.row({figure.set, figure.name, figure.region, format_time(figure.published_ns),
               format_time(figure.predicted_ns), format_signed_percent(figure.error()),
               figure.learned ? "fit" : "prediction",
               std::abs(figure.error()) <= tolerance ? "ok" : "OUTSIDE"});
  }
  return table;
}

std::string json_of(const std::vector<PublishedFigure>& figures,
                    const std::vector<std::string>& pairs) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  for (const PublishedFigure& figure : figures) {
    rows.push_back({{"set", figure.set},
                    {"figure", figure.name},
                    {"scenario", figure.scenario},
                    {"region", figure.region},
                    {"published_ns", figure.published_ns},
                    {"predicted_ns", figure.predicted_ns},
                    {"error", figure.error()},
                    {"standing", figure.learned ? "fit" : "prediction"}});
  }
  return Json{
             {"schema_version", 1}, {"kind", "figures"}, {"figures", rows}, {"turned_round", pairs}}
             .dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

int run_figures(const FigureOptions& options) {
  const double tolerance = parse_percent(options.tolerance, "--tolerance");
  std::vector<PublishedFigure> figures = read_figures(options.table);
  predict(figures, options);
  const std::vector<std::string> pairs = turned_round(figures, tolerance);
  const auto outside = std::ranges::count_if(
      figures, [&](const PublishedFigure& figure) { return std::abs(figure.error()) > tolerance; });
  const TextTable table = table_of(figures, tolerance);
  std::string text = table.markdown();
  text += fmt::format("\n{} of {} figures outside {}; {}\n", outside, figures.size(),
                      format_percent(tolerance),
                      pairs.empty() ? "the cases come in the published order"
                                    : fmt::format("{} in another order", pairs.size()));
  for (const std::string& pair : pairs) text += fmt::format("  {}\n", pair);
  emit(options.output, options.output.format == OutputFormat::Json  ? json_of(figures, pairs)
                       : options.output.format == OutputFormat::Csv ? table.csv()
                                                                    : text);
  return outside == 0 && pairs.empty() ? kDone : kBadAnswer;
}

}  // namespace

void add_figures_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<FigureOptions>();
  CLI::App& command = add_subcommand(
      app, "figures", "Figures that others published, against what is predicted for them",
      "foretrace figures reports/published/d2l_12_3.csv --machine v100-pcie-4");
  command
      .add_option("TABLE", options->table,
                  "A .csv file: set,figure,scenario,region,published; see reports/published")
      ->required();
  add_machine_option(command, options->machine);
  add_with_option(command, options->with);
  add_host_option(command, options->with);
  command.add_option("--tolerance", options->tolerance, "Figures may be off by this (default 10%)")
      ->option_text("PERCENT");
  add_output_options(command, options->output);
  command.callback([options, &exit_code] { exit_code = run_figures(*options); });
}

}  // namespace foretrace
