// A comparison with real nccl-tests output as text, CSV and JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/table/text_table.h"
#include "reports/timeline/statistics.h"
#include "sim/applications/nccl_tests/compare.h"

namespace foretrace {
namespace {

using Comparisons = std::vector<NcclTestsComparison>;

constexpr std::uint64_t kOneMebibyte = 1u << 20;

std::string title(const NcclTestsPlan& plan) {
  std::string text =
      fmt::format("{}, {} ranks: {} process(es)", info(plan.op).name, plan.ranks(), plan.processes);
  if (plan.threads > 1) text += fmt::format(" x {} threads", plan.threads);
  text += fmt::format(" x {} GPU(s)", plan.gpus);
  if (plan.nodes > 1) text += fmt::format(" on {} nodes", plan.nodes);
  if (plan.graph_launches > 0) text += fmt::format(", {} graph launches", plan.graph_launches);
  if (plan.blocking > 0) text += fmt::format(", blocking {}", plan.blocking);
  if (plan.type != "float") text += ", " + plan.type;
  if (!plan.nccl.empty()) text += ", NCCL " + plan.nccl;
  return text;
}

std::string choice(const NcclTestsRow& row) {
  return row.channels == 0 ? "-"
                           : fmt::format("{} {} {}", row.algorithm, row.protocol, row.channels);
}

std::string table(const NcclTestsComparison& comparison) {
  using enum TextTable::Align;
  TextTable table;
  table.column("size", Right);
  for (const char* heading : {"measured", "samples", "predicted", "band", "error"}) {
    table.column(heading, Right);
  }
  table.column("predicted choice", Left);
  for (const NcclTestsComparedRow& row : comparison.rows) {
    const NcclTestsRow& predicted = row.predicted;
    table.row({format_size(predicted.size.bytes), format_time(row.median_us * 1e3),
               std::to_string(row.measured_us.size()), format_time(predicted.time_us * 1e3),
               fmt::format("{} to {}", format_time(predicted.low_us * 1e3),
                           format_time(predicted.high_us * 1e3)),
               format_signed_percent(row.error), choice(predicted)});
  }
  return table.markdown();
}

struct Summary {
  std::vector<double> errors;  ///< absolute
  double worst = 0;            ///< signed
  std::string where;
  std::size_t samples = 0, in_band = 0;
};

template <class Counts>
Summary summarize(const Comparisons& comparisons, const Counts& counts) {
  Summary summary;
  for (const NcclTestsComparison& comparison : comparisons) {
    for (const NcclTestsComparedRow& row : comparison.rows) {
      const std::uint64_t bytes = row.predicted.size.bytes;
      if (!counts(bytes)) continue;
      summary.errors.push_back(std::abs(row.error));
      summary.samples += row.measured_us.size();
      summary.in_band += row.in_band;
      if (!summary.where.empty() && std::abs(row.error) <= std::abs(summary.worst)) continue;
      summary.worst = row.error;
      summary.where = fmt::format("{} of {} ranks, {}", info(comparison.plan.op).name,
                                  comparison.plan.ranks(), format_size(bytes));
    }
  }
  return summary;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

struct SizeClass {
  const char* name;
  bool (*counts)(std::uint64_t bytes);
};
constexpr SizeClass kClasses[] = {
    {"below 1 MiB", [](std::uint64_t bytes) { return bytes < kOneMebibyte; }},
    {"from 1 MiB", [](std::uint64_t bytes) { return bytes >= kOneMebibyte; }},
    {"all", [](std::uint64_t) { return true; }},
};

std::string summary_table(const Comparisons& comparisons) {
  using enum TextTable::Align;
  TextTable table;
  table.column("sizes", Left);
  for (const char* heading : {"rows", "mean error", "p95", "worst"}) table.column(heading, Right);
  table.column("where", Left);
  table.column("samples in band", Right);
  for (const SizeClass& size_class : kClasses) {
    const Summary summary = summarize(comparisons, size_class.counts);
    if (summary.errors.empty()) continue;
    table.row({size_class.name, std::to_string(summary.errors.size()),
               format_percent(mean(summary.errors)), format_percent(quantile(summary.errors, 0.95)),
               format_signed_percent(summary.worst), summary.where,
               format_percent(static_cast<double>(summary.in_band) /
                              static_cast<double>(summary.samples))});
  }
  return table.markdown();
}

std::string text(const Comparisons& comparisons) {
  std::string out;
  for (const NcclTestsComparison& comparison : comparisons) {
    out += fmt::format("{} ({})\n\n{}\n", title(comparison.plan), fmt::join(comparison.files, ", "),
                       table(comparison));
  }
  return out + summary_table(comparisons);
}

std::string csv(const Comparisons& comparisons) {
  std::string out =
      "op,processes,gpus_per_process,ranks,graph_launches,size_bytes,measured_us,samples,"
      "predicted_us,low_us,high_us,error,in_band,algorithm,protocol,channels\n";
  for (const NcclTestsComparison& c : comparisons) {
    for (const NcclTestsComparedRow& row : c.rows) {
      const NcclTestsRow& p = row.predicted;
      out += fmt::format("{},{},{},{},{},{},{:.3f},{},{:.3f},{:.3f},{:.3f},{:.4f},{},{},{},{}\n",
                         info(c.plan.op).name, c.plan.processes, c.plan.gpus_per_process(),
                         c.plan.ranks(), c.plan.graph_launches, p.size.bytes, row.median_us,
                         row.measured_us.size(), p.time_us, p.low_us, p.high_us, row.error,
                         row.in_band, p.algorithm, p.protocol, p.channels);
    }
  }
  return out;
}

std::string json(const Comparisons& comparisons) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  for (const NcclTestsComparison& c : comparisons) {
    for (const NcclTestsComparedRow& row : c.rows) {
      const NcclTestsRow& p = row.predicted;
      rows.push_back({{"op", info(c.plan.op).name},
                      {"processes", c.plan.processes},
                      {"gpus_per_process", c.plan.gpus_per_process()},
                      {"ranks", c.plan.ranks()},
                      {"graph_launches", c.plan.graph_launches},
                      {"size_bytes", p.size.bytes},
                      {"measured_us", row.median_us},
                      {"samples", row.measured_us.size()},
                      {"predicted_us", p.time_us},
                      {"low_us", p.low_us},
                      {"high_us", p.high_us},
                      {"error", row.error},
                      {"in_band", row.in_band},
                      {"algorithm", p.algorithm},
                      {"protocol", p.protocol},
                      {"channels", p.channels}});
    }
  }
  Json summary = Json::array();
  for (const SizeClass& size_class : kClasses) {
    const Summary figures = summarize(comparisons, size_class.counts);
    if (figures.errors.empty()) continue;
    summary.push_back({{"sizes", size_class.name},
                       {"rows", figures.errors.size()},
                       {"mean_abs_error", mean(figures.errors)},
                       {"p95_abs_error", quantile(figures.errors, 0.95)},
                       {"worst_error", figures.worst},
                       {"samples", figures.samples},
                       {"in_band", figures.in_band}});
  }
  const Json document{{"schema_version", 1}, {"rows", rows}, {"summary", summary}};
  return document.dump(2) + "\n";
}

}  // namespace

std::string render_nccl_tests(const Comparisons& comparisons, OutputFormat format) {
  switch (format) {
    case OutputFormat::Csv:
      return csv(comparisons);
    case OutputFormat::Json:
      return json(comparisons);
    case OutputFormat::Text:
      break;
  }
  return text(comparisons);
}

}  // namespace foretrace
