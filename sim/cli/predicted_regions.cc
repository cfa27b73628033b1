#include "sim/cli/predicted_regions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "reports/table/text_table.h"
#include "scenarios/base/values/time_text.h"

namespace foretrace {
namespace {

std::string title_of(const PredictedRegion& region) {
  const std::string turn = region.instance > 0 ? fmt::format(" #{}", region.instance) : "";
  return divided_name(region.name + turn, region.per);
}

}  // namespace

std::vector<PredictedRegion> predicted_regions(const Timeline& timeline) {
  // Groups of processes, and parts of a loop whose turns differ, have operations of their own for
  // one region of the file: its line and name say which one it is, and how often a process was
  // there before, which turn.
  using Place = std::pair<int, std::string>;
  std::vector<const RegionSamples*> all;
  for (const RegionSamples& one : timeline.regions) all.push_back(&one);
  std::ranges::stable_sort(all, {}, [](const RegionSamples* one) {
    return std::pair{one->op, one->instance};
  });
  std::map<std::pair<Place, std::uint32_t>, std::uint64_t> turns;  // of a process
  std::map<std::pair<Place, std::uint64_t>, std::size_t> rows;
  std::vector<PredictedRegion> regions;
  for (const RegionSamples* one : all) {
    const Place place{timeline.ops[one->op].line, one->name};
    const std::uint64_t turn = turns[{place, one->process}]++;
    const auto [found, is_new] = rows.try_emplace({place, turn}, regions.size());
    if (is_new) regions.push_back({one->name, place.first, turn});
    PredictedRegion& region = regions[found->second];
    const double ns = static_cast<double>(one->samples_ns.front()) / static_cast<double>(one->per);
    ++region.processes;
    if (is_new || ns < region.fastest_ns) {
      region.fastest = one->process;
      region.fastest_ns = ns;
    }
    if (!is_new && ns <= region.ns) continue;
    region.per = one->per;
    region.process = one->process;
    region.ns = ns;
    region.low_ns = ns * one->low_factor;
    region.high_ns = ns * one->high_factor;
  }
  return regions;
}

std::string without_regions_text(const Timeline& timeline) {
  if (timeline.outcome.kind != Outcome::Kind::Completed || timeline.spans.empty()) return {};
  const auto begin = std::ranges::min(timeline.spans, {}, &Span::begin_ns).begin_ns;
  const auto end = std::ranges::max(timeline.spans, {}, &Span::end_ns).end_ns;
  return fmt::format(
      "no region; from the first call to the end of the last work: {}, first uses included\n",
      format_time(static_cast<double>(end - begin)));
}

std::string regions_text(const std::vector<PredictedRegion>& regions) {
  TextTable table;
  using enum TextTable::Align;
  const bool several = std::ranges::any_of(
      regions, [](const PredictedRegion& region) { return region.processes > 1; });
  table.column("region", Left);
  table.column("line", Right);
  table.column("predicted", Right);
  table.column("band", Right);
  table.column(several ? "slowest process" : "process", Right);
  if (several) table.column("fastest", Left);
  for (const PredictedRegion& region : regions) {
    std::vector<std::string> row{
        title_of(region), std::to_string(region.line), format_time(region.ns),
        region.has_band()
            ? fmt::format("{} .. {}", format_time(region.low_ns), format_time(region.high_ns))
            : "-",
        std::to_string(region.process)};
    if (several) {
      row.push_back(
          region.processes > 1
              ? fmt::format("{}, process {}", format_time(region.fastest_ns), region.fastest)
              : "-");
    }
    table.row(std::move(row));
  }
  return table.empty() ? std::string{} : table.markdown();
}

std::string regions_csv(const std::vector<PredictedRegion>& regions) {
  TextTable table;
  using enum TextTable::Align;
  for (const char* const name :
       {"region", "line", "instance", "per", "predicted_ns", "low_ns", "high_ns", "process",
        "processes", "fastest_process", "fastest_ns"}) {
    table.column(name, Right);
  }
  const auto ns = [](double value) { return fmt::format("{:.1f}", value); };
  for (const PredictedRegion& region : regions) {
    table.row({region.name, std::to_string(region.line), std::to_string(region.instance),
               std::to_string(region.per), ns(region.ns), ns(region.low_ns), ns(region.high_ns),
               std::to_string(region.process), std::to_string(region.processes),
               std::to_string(region.fastest), ns(region.fastest_ns)});
  }
  return table.csv();
}

nlohmann::ordered_json regions_json(const std::vector<PredictedRegion>& regions) {
  auto rows = nlohmann::ordered_json::array();
  for (const PredictedRegion& region : regions) {
    nlohmann::ordered_json row{{"region", region.name},
                               {"line", region.line},
                               {"instance", region.instance},
                               {"per", region.per},
                               {"predicted_ns", region.ns}};
    if (region.has_band()) {
      row["low_ns"] = region.low_ns;
      row["high_ns"] = region.high_ns;
    }
    row["process"] = region.process;
    row["processes"] = region.processes;
    row["fastest_process"] = region.fastest;
    row["fastest_ns"] = region.fastest_ns;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace foretrace
