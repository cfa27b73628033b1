#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "reports/compare/compare.h"
#include "reports/compare/rates.h"
#include "reports/table/text_table.h"
#include "reports/timeline/statistics.h"
#include "scenarios/program/program.h"

namespace foretrace {
namespace {

using RegionKey = std::pair<std::uint32_t, std::uint64_t>;  // op, instance
using OneRegion = std::vector<const RegionSamples*>;        // one per process

std::map<RegionKey, OneRegion> by_key(const Timeline& timeline) {
  std::map<RegionKey, OneRegion> regions;
  for (const RegionSamples& region : timeline.regions) {
    regions[{region.op, region.instance}].push_back(&region);
  }
  return regions;
}

double reported(const RegionSamples& region, std::int64_t ns) {
  return static_cast<double>(ns) / static_cast<double>(region.per);
}

/// Per repetition, the maximum over processes. A run that was cut short has processes with fewer
/// repetitions; only those that all of them ended count.
std::vector<double> slowest_process(const OneRegion& region) {
  std::size_t repetitions = std::numeric_limits<std::size_t>::max();
  for (const auto* process : region) {
    repetitions = std::min(repetitions, process->samples_ns.size());
  }
  std::vector<double> times(region.empty() ? 0 : repetitions, 0.0);
  for (std::size_t r = 0; r < times.size(); ++r) {
    for (const auto* process : region) {
      times[r] = std::max(times[r], reported(*process, process->samples_ns[r]));
    }
  }
  return times;
}

std::optional<RegionFigure> figure_of(const OneRegion& region) {
  const auto times = slowest_process(region);
  if (times.empty()) return std::nullopt;
  const auto& starts = region.front()->starts;
  const auto count = std::set<std::uint32_t>(starts.begin(), starts.end()).size();
  return RegionFigure{.median_ns = median(times),
                      .p5_ns = quantile(times, 0.05),
                      .p95_ns = quantile(times, 0.95),
                      .samples = times.size(),
                      .starts = std::max<std::size_t>(count, 1)};
}

std::optional<double> median_of(const RegionSamples& process) {
  if (process.samples_ns.empty()) return std::nullopt;
  std::vector<double> times;
  for (const auto ns : process.samples_ns) times.push_back(reported(process, ns));
  return median(times);
}

/// Of the traced repetition, the maximum over processes; empty when a process has none.
std::optional<double> traced_ns(const OneRegion& region) {
  double slowest = 0;
  for (const auto* process : region) {
    if (!process->traced_ns) return std::nullopt;
    slowest = std::max(slowest, reported(*process, *process->traced_ns));
  }
  return slowest;
}

/// The process that decides a predicted region's time decides its band.
const RegionSamples& slowest_of(const OneRegion& region) {
  return **std::ranges::max_element(
      region, {}, [](const RegionSamples* process) { return median_of(*process).value_or(0); });
}

std::vector<ProcessFigure> per_process(const OneRegion& first, const OneRegion& second) {
  std::map<std::uint32_t, ProcessFigure> processes;
  for (const auto* p : first) processes[p->process].first_ns = median_of(*p);
  for (const auto* p : second) processes[p->process].second_ns = median_of(*p);
  std::vector<ProcessFigure> figures;
  for (auto& [process, figure] : processes) {
    figure.process = process;
    figures.push_back(figure);
  }
  return figures;
}

Judgement judge(double value, const RegionFigure& reference, double tolerance) {
  const double difference = std::abs(value - reference.median_ns);
  const double half_spread = (reference.p95_ns - reference.p5_ns) / 2;
  if (difference <= tolerance * reference.median_ns) return Judgement::WithinTolerance;
  if (value >= reference.p5_ns && value <= reference.p95_ns) return Judgement::InsideSpread;
  if (difference <= std::max(kNoiseFloorNs, half_spread)) return Judgement::WithinNoise;
  return Judgement::Outside;
}

std::string display_name(const std::string& name, std::uint64_t instance, const OpRow& op) {
  if (op.loops.empty()) return name;
  return fmt::format("{} [{}]", name, fmt::join(loop_indices(instance, op.loops), ","));
}

/// By any of its processes, each once.
std::vector<std::string> learned_by(const OneRegion& region) {
  std::set<std::string> keys;
  for (const auto* process : region) {
    keys.insert(process->learned_by.begin(), process->learned_by.end());
  }
  return {keys.begin(), keys.end()};
}

RegionRow make_row(const RegionKey& key, const OneRegion& first, const OneRegion& second,
                   const Timeline& timeline, double tolerance) {
  const RegionSamples& any = *(first.empty() ? second : first).front();
  RegionRow row;
  row.op = key.first;
  row.instance = key.second;
  row.name = row.title = display_name(any.name, key.second, timeline.ops[key.first]);
  row.line = timeline.ops[key.first].line;
  row.per = any.per;
  row.first = figure_of(first);
  row.second = figure_of(second);
  row.processes = per_process(first, second);
  row.learned_by = learned_by(first);
  if (row.first && !timeline.origin.measured) {
    row.low_ns = row.first->median_ns * slowest_of(first).low_factor;
    row.high_ns = row.first->median_ns * slowest_of(first).high_factor;
  }
  if (row.second && row.second->median_ns > 0) {
    if (const auto traced = traced_ns(second)) {
      row.tracing_change = relative_difference(*traced, row.second->median_ns);
    }
    if (row.first) row.error = relative_difference(row.first->median_ns, row.second->median_ns);
  }
  if (row.first && row.second) row.judgement = judge(row.first->median_ns, *row.second, tolerance);
  return row;
}

/// Whether no two instances are of one size: then the size says which one it is.
bool are_told_apart_by_size(const OpRow& op) {
  const std::set<std::uint64_t> sizes(op.sizes.begin(), op.sizes.end());
  return !op.sizes.empty() && sizes.size() == op.sizes.size();
}

}  // namespace

void set_titles(std::vector<RegionRow>& regions, const std::vector<OpRow>& ops) {
  for (RegionRow& row : regions) {
    const OpRow& op = ops[row.op];
    row.size_bytes = size_of(op, row.instance);
    if (op.sizes.empty()) continue;
    const std::string& name = are_told_apart_by_size(op) ? op.label : row.name + ",";
    row.title = fmt::format("{} {}", name, format_size(row.size_bytes));
  }
}

std::vector<RegionRow> compare_regions(const Timeline& first, const Timeline& second,
                                       double tolerance) {
  auto in_first = by_key(first);
  auto in_second = by_key(second);
  std::set<RegionKey> keys;
  for (const auto& [key, region] : in_first) keys.insert(key);
  for (const auto& [key, region] : in_second) keys.insert(key);
  std::vector<RegionRow> rows;
  for (const RegionKey& key : keys) {
    rows.push_back(make_row(key, in_first[key], in_second[key], first, tolerance));
  }
  return rows;
}

}  // namespace foretrace
