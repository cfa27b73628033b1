#include "sim/explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "reports/spans/span_class.h"
#include "reports/table/text_table.h"
#include "scenarios/program/program_walk.h"
#include "scenarios/text/errors.h"
#include "sim/engine/children.h"
#include "sim/simulate.h"

namespace foretrace::explain {
namespace {

constexpr double kSmallest = 0.005;  // share of the time; less is rounding

/// What is timed in a program: names of regions and of event_elapsed_time with an id.
std::vector<std::string> names_of_times(const Program& program) {
  std::set<std::string> names;
  for_each_op(program, [&](const HostThread&, const Op& op, Around) {
    if (const auto* region = std::get_if<Region>(&op.kind)) names.insert(region->name);
    if (is_timed(op)) names.insert(op.label);
  });
  return {names.begin(), names.end()};
}

/// All executions of one name in the process where they take longest.
struct Longest {
  double seconds = 0;
  double process = 0;
  double executions = 0;
};
constexpr std::size_t kNumbers = 3;

/// By name, and the whole run at last: as numbers, for a child to send.
std::vector<double> numbers_of(const Timeline& timeline, const std::vector<std::string>& names) {
  std::map<std::string, std::map<std::uint32_t, Longest>> by_name;
  for (const RegionSamples& region : timeline.regions) {
    Longest& here = by_name[region.name][region.process];
    here.seconds += static_cast<double>(region.samples_ns.front()) * 1e-9;
    here.process = region.process;
    ++here.executions;
  }
  std::vector<double> numbers;
  const auto append = [&](const Longest& one) {
    numbers.insert(numbers.end(), {one.seconds, one.process, one.executions});
  };
  for (const std::string& name : names) {
    Longest longest;
    for (const auto& [process, one] : by_name[name]) {
      if (one.seconds > longest.seconds) longest = one;
    }
    append(longest);
  }
  Longest whole;
  for (const Span& span : timeline.spans) {
    whole.seconds = std::max(whole.seconds, static_cast<double>(span.end_ns) * 1e-9);
  }
  append(whole);
  return numbers;
}

Longest longest_at(const std::vector<double>& numbers, std::size_t name) {
  const auto at = numbers.begin() + static_cast<std::ptrdiff_t>(kNumbers * name);
  return {at[0], at[1], at[2]};
}

/// What the run is judged by: the name whose executions take longest together; without one that
/// takes any time, the whole run.
std::size_t judged_by(const std::vector<double>& numbers) {
  const std::size_t whole = numbers.size() / kNumbers - 1;
  std::size_t longest = whole;
  for (std::size_t name = 0; name < whole; ++name) {
    const double least = longest == whole ? 0 : longest_at(numbers, longest).seconds;
    if (longest_at(numbers, name).seconds > least) longest = name;
  }
  return longest;
}

/// None where there is nothing to take away, or what is left does not end.
std::vector<double> numbers_without(Cause cause, Program program, Machine machine,
                                    const std::vector<std::string>& names) {
  try {
    if (!take_away(cause, program, machine)) return {};
    const Timeline timeline = simulate(program, machine);
    if (timeline.outcome.kind != Outcome::Kind::Completed) return {};
    return numbers_of(timeline, names);
  } catch (const UsageError&) {
    return {};
  }
}

/// "region 'step' (the longest; process 1, 10 executions)".
std::string what_is_explained(const Explanation& explanation) {
  if (explanation.region.empty()) return "the whole run";
  return fmt::format("region '{}' (the longest; process {}, {} execution{})", explanation.region,
                     explanation.process, explanation.executions,
                     explanation.executions == 1 ? "" : "s");
}

std::string share(double part, double whole) {
  return whole <= 0 ? "-" : fmt::format("{:.1f} %", 100 * part / whole);
}

std::string gpu_name(const GpuTime& gpu) {
  return fmt::format("process {}, device {}", gpu.process, gpu.device);
}

}  // namespace

std::string headline_of(const Explanation& explanation) {
  if (!explanation.ends) {
    return "the run never ends, so nothing explains its time; foretrace check says who waits";
  }
  const std::string run =
      fmt::format("{}: {}", what_is_explained(explanation), format_time(explanation.seconds * 1e9));
  if (explanation.gains.empty() || explanation.gains.front().gain < kSmallest) {
    return run + ", and none of the causes costs time; the work itself does";
  }
  const Gain& first = explanation.gains.front();
  return fmt::format("{}, first of all by {}: without it {} ({} less)", run, name_of(first.cause),
                     format_time(first.seconds * 1e9), format_percent(first.gain));
}

Explanation explain(const Program& program, const Machine& machine) {
  const std::vector<std::string> names = names_of_times(program);
  std::vector<Job> jobs{[&] {
    const Timeline timeline = simulate(program, machine);
    const bool ends = timeline.outcome.kind == Outcome::Kind::Completed;
    return ends ? numbers_of(timeline, names) : std::vector<double>{};
  }};
  for (const Cause cause : kCauses) {
    jobs.emplace_back([&, cause] { return numbers_without(cause, program, machine, names); });
  }
  const auto numbers = run_in_children(jobs);
  if (numbers[0].empty()) return {.ends = false};
  const std::size_t judged = judged_by(numbers[0]);
  const Longest longest = longest_at(numbers[0], judged);
  Explanation explanation{.seconds = longest.seconds,
                          .region = judged < names.size() ? names[judged] : "",
                          .process = static_cast<std::uint32_t>(longest.process),
                          .executions = static_cast<std::size_t>(longest.executions),
                          .gains = {}};
  for (std::size_t i = 0; i < kCauses.size(); ++i) {
    if (numbers[i + 1].empty()) continue;
    const double without = longest_at(numbers[i + 1], judged).seconds;
    if (without <= 0) continue;  // it is not run then
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
            {"ends", explanation.ends},
            {"region", explanation.region},
            {"process", explanation.process},
            {"executions", explanation.executions},
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
