#include "sim/explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "reports/spans/span_class.h"
#include "reports/table/text_table.h"
#include "scenarios/text/errors.h"
#include "sim/engine/children.h"
#include "sim/simulate.h"

namespace foretrace::explain {
namespace {

constexpr double kSmallest = 0.005;  // share of the time; less is rounding

/// What the run is judged by: of its regions, all executions together, the one that takes longest
/// in any process; without regions all of it.
double seconds_of(const Timeline& timeline) {
  std::map<std::pair<std::string, std::uint32_t>, std::int64_t> by_region;
  for (const RegionSamples& region : timeline.regions) {
    by_region[{region.name, region.process}] += region.samples_ns.front();
  }
  std::int64_t longest = 0;
  for (const auto& [region, ns] : by_region) longest = std::max(longest, ns);
  for (const Span& span : timeline.spans) {
    if (by_region.empty()) longest = std::max(longest, span.end_ns);
  }
  return static_cast<double>(longest) * 1e-9;
}

/// None where there is nothing to take away, or what is left does not end.
std::vector<double> seconds_without(Cause cause, Program program, Machine machine) {
  try {
    if (!take_away(cause, program, machine)) return {};
    const Timeline timeline = simulate(program, machine);
    if (timeline.outcome.kind != Outcome::Kind::Completed) return {};
    return {seconds_of(timeline)};
  } catch (const UsageError&) {
    return {};
  }
}

std::string share(double part, double whole) {
  return whole <= 0 ? "-" : fmt::format("{:.1f} %", 100 * part / whole);
}

std::string gpu_name(const GpuTime& gpu) {
  return fmt::format("process {}, device {}", gpu.process, gpu.device);
}

}  // namespace

std::string headline_of(const Explanation& explanation) {
  if (explanation.gains.empty() || explanation.gains.front().gain < kSmallest) {
    return fmt::format("{}: none of the causes costs time; the work itself does",
                       format_time(explanation.seconds * 1e9));
  }
  const Gain& first = explanation.gains.front();
  return fmt::format("{}, first of all by {}: without it {} ({} less)",
                     format_time(explanation.seconds * 1e9), name_of(first.cause),
                     format_time(first.seconds * 1e9), format_percent(first.gain));
}

Explanation explain(const Program& program, const Machine& machine) {
  std::vector<Job> jobs{
      [&] { return std::vector<double>{seconds_of(simulate(program, machine))}; }};
  for (const Cause cause : kCauses) {
    jobs.emplace_back(
        [&program, &machine, cause] { return seconds_without(cause, program, machine); });
  }
  const auto numbers = run_in_children(jobs);
  Explanation explanation{.seconds = numbers[0].front(), .gains = {}};
  for (std::size_t i = 0; i < kCauses.size(); ++i) {
    if (numbers[i + 1].empty()) continue;
    const double without = numbers[i + 1].front();
    explanation.gains.push_back(
        {kCauses[i], without, explanation.seconds > 0 ? 1 - without / explanation.seconds : 0});
  }
  std::ranges::stable_sort(explanation.gains, std::greater{}, &Gain::gain);
  return explanation;
}

std::string text_of(const Timeline& timeline, const Explanation& explanation) {
  using enum TextTable::Align;
  TextTable causes;
  causes.column("cause", Left);
  causes.column("simulated with", Left);
  causes.column("run", Right);
  causes.column("less time", Right);
  for (const Gain& gain : explanation.gains) {
    causes.row({std::string{name_of(gain.cause)}, std::string{change_of(gain.cause)},
                format_time(gain.seconds * 1e9), format_percent(gain.gain)});
  }
  TextTable gpus;
  gpus.column("GPU", Left);
  for (std::size_t i = 0; i < kUses; ++i) {
    gpus.column(std::string{name_of(static_cast<Use>(i))}, Right);
  }
  for (const GpuTime& gpu : gpu_times(timeline)) {
    std::vector<std::string> cells{gpu_name(gpu)};
    for (const std::int64_t ns : gpu.by_use) {
      cells.push_back(share(static_cast<double>(ns), static_cast<double>(gpu.ns)));
    }
    gpus.row(std::move(cells));
  }
  const CriticalPath path = critical_path(timeline);
  std::string on_path;
  for (std::size_t i = 0; i < path.by_class.size(); ++i) {
    if (path.by_class[i] == 0) continue;
    on_path +=
        fmt::format("{} {}, ", name_of(static_cast<SpanClass>(i)),
                    share(static_cast<double>(path.by_class[i]), static_cast<double>(path.ns)));
  }
  return fmt::format("{}\n\n{}\n{}\ncritical path: {}waiting {}\n", headline_of(explanation),
                     causes.empty() ? "" : causes.markdown(), gpus.empty() ? "" : gpus.markdown(),
                     on_path,
                     share(static_cast<double>(path.nothing_ns), static_cast<double>(path.ns)));
}

std::string json_of(const Timeline& timeline, const Explanation& explanation) {
  using Json = nlohmann::ordered_json;
  Json json{{"schema_version", 1},
            {"kind", "explanation"},
            {"scenario", timeline.origin.scenario},
            {"seconds", explanation.seconds},
            {"causes", Json::array()},
            {"gpus", Json::array()}};
  for (const Gain& gain : explanation.gains) {
    json["causes"].push_back({{"cause", name_of(gain.cause)},
                              {"with", change_of(gain.cause)},
                              {"seconds", gain.seconds},
                              {"gain", gain.gain}});
  }
  for (const GpuTime& gpu : gpu_times(timeline)) {
    Json row{{"process", gpu.process}, {"device", gpu.device}, {"ns", gpu.ns}};
    for (std::size_t i = 0; i < kUses; ++i) {
      row[std::string{name_of(static_cast<Use>(i))}] = gpu.by_use[i];
    }
    json["gpus"].push_back(std::move(row));
  }
  const CriticalPath path = critical_path(timeline);
  Json on_path{{"ns", path.ns}, {"waiting", path.nothing_ns}};
  for (std::size_t i = 0; i < path.by_class.size(); ++i) {
    on_path[std::string{name_of(static_cast<SpanClass>(i))}] = path.by_class[i];
  }
  json["critical_path"] = std::move(on_path);
  return json.dump(2) + "\n";
}

}  // namespace foretrace::explain
