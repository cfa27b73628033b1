#include "sim/applications/fit/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "reports/table/text_table.h"
#include "reports/timeline/statistics.h"
#include "sim/applications/fit/sources.h"

namespace foretrace {
namespace {

constexpr std::uint64_t kLarge = std::uint64_t{1}
                                 << 20;  ///< from here the GPUs decide, not the host

const char* standing_name(Standing standing) {
  switch (standing) {
    case Standing::Fit:
      return "fit";
    case Standing::HeldOutSize:
      return "validation: size";
    case Standing::HeldOutRanks:
      return "validation: ranks";
    case Standing::Validation:
      break;
  }
  return "validation";
}

struct Errors {
  std::vector<double> fit, validation;
};

void add_cells(std::vector<std::string>& cells, const std::vector<double>& errors) {
  cells.push_back(format_count(errors.size()));
  if (errors.empty()) {
    cells.insert(cells.end(), 3, "-");
    return;
  }
  double sum = 0;
  for (const double error : errors) sum += error;
  cells.push_back(format_percent(sum / static_cast<double>(errors.size())));
  cells.push_back(format_percent(quantile(errors, 0.95)));
  cells.push_back(format_percent(*std::ranges::max_element(errors)));
}

std::string table_of(const char* heading, const std::map<std::string, Errors>& rows) {
  TextTable table;
  using enum TextTable::Align;
  table.column(heading, Left);
  for (const char* side : {"fit", "validation"}) {
    for (const char* figure : {"n", "mean", "p95", "worst"}) {
      table.column(fmt::format("{} {}", side, figure), Right);
    }
  }
  for (const auto& [name, errors] : rows) {
    std::vector<std::string> cells{name};
    add_cells(cells, errors.fit);
    add_cells(cells, errors.validation);
    table.row(std::move(cells));
  }
  return table.markdown();
}

/// The line of the second table that a region of NCCL's belongs to.
std::string whole_name(const FitRun& run, const FitTarget& target, const TargetClass& kind) {
  std::string name = kind.graph        ? "graph launches"
                     : kind.one_thread ? "one thread for all GPUs"
                                       : "one process per GPU";
  if (!kind.graph) name += kind.bytes >= kLarge ? ", from 1 MiB" : ", below 1 MiB";
  if (target.standing == Standing::HeldOutRanks) {
    name += fmt::format(": {} ranks, held out", run.gpus);
  }
  return name;
}

bool is_nccl_sweep(const Program& program, const TargetClass& kind) {
  return kind.nccl && std::ranges::find(program.tags, "nccl") != program.tags.end();
}

std::string shown(double value, ParamUnit unit) {
  switch (unit) {
    case ParamUnit::Time:
      return format_time(value * 1e9);
    case ParamUnit::Rate:
      return fmt::format("{:.4g} GB/s", value * 1e-9);
    case ParamUnit::FlopRate:
      return fmt::format("{:.4g} TFLOP/s", value * 1e-12);
    case ParamUnit::Size:
      return format_size(static_cast<std::uint64_t>(value));
    case ParamUnit::Count:
    case ParamUnit::Ratio:
    case ParamUnit::NvlinkShare:
      break;
  }
  return fmt::format("{:.4g}", value);
}

}  // namespace

std::string residual_table(const FitData& data, const std::vector<TargetClass>& classes,
                           const FitResult& result, bool csv) {
  TextTable table;
  using enum TextTable::Align;
  table.column("scenario", Left);
  table.column("GPUs", Right);
  table.column("region", Left);
  table.column("class", Left);
  table.column("measured", Right);
  table.column("predicted", Right);
  table.column("error", Right);
  table.column("spread", Right);
  table.column("in", Left);
  for (std::size_t i = 0; i < data.targets.size(); ++i) {
    const FitTarget& target = data.targets[i];
    const FitRun& run = data.runs[target.run];
    const double predicted = result.predicted_ns[i];
    const bool there = !std::isnan(predicted);
    table.row({run.program.name, std::to_string(run.gpus), target.region, classes[i].name,
               format_time(target.measured_ns), there ? format_time(predicted) : "-",
               there ? format_signed_percent(predicted / target.measured_ns - 1) : "-",
               format_percent(target.spread), standing_name(target.standing)});
  }
  return csv ? table.csv() : table.markdown();
}

std::string class_summary(const FitData& data, const std::vector<TargetClass>& classes,
                          const FitResult& result) {
  std::map<std::string, Errors> by_class;
  std::map<std::string, Errors> whole;
  for (std::size_t i = 0; i < data.targets.size(); ++i) {
    const FitTarget& target = data.targets[i];
    if (std::isnan(result.predicted_ns[i])) continue;
    const double error = std::abs(result.predicted_ns[i] / target.measured_ns - 1);
    const auto add = [&](Errors& errors) {
      (target.standing == Standing::Fit ? errors.fit : errors.validation).push_back(error);
    };
    add(by_class[classes[i].name]);
    if (is_nccl_sweep(data.runs[target.run].program, classes[i])) {
      add(whole[whole_name(data.runs[target.run], target, classes[i])]);
    }
  }
  std::string text = table_of("class", by_class);
  if (!whole.empty()) {
    text += '\n';
    text += table_of("NCCL's sweeps", whole);
  }
  return text;
}

std::string parameter_table(const FitResult& result, const Machine& start) {
  TextTable table;
  using enum TextTable::Align;
  table.column("parameter", Left);
  table.column("before", Right);
  table.column("fitted", Right);
  table.column("spread", Right);
  for (const Param param : result.fitted) {
    const ParamInfo& what = info(param);
    const ParamValue& value = result.machine.get(param);
    table.row({std::string{what.key}, shown(start.get(param).value, what.unit),
               shown(value.value, what.unit), format_percent(value.spread)});
  }
  return table.markdown();
}

std::string refusal_text(const FitResult& result, const DeterminedBy& determined) {
  std::string text;
  for (const Refused& refused : result.refused) {
    text +=
        fmt::format("not determined, left as it was: {}: {} (would be by: {})\n",
                    info(refused.param).key, refused.reason, advice_for(refused.param, determined));
  }
  for (const Correlated& pair : result.correlated) {
    text += fmt::format("hardly told apart: {} and {} (correlation {:+.2f})\n", info(pair.one).key,
                        info(pair.other).key, pair.correlation);
  }
  return text;
}

}  // namespace foretrace
