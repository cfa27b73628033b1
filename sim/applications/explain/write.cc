// What explain prints.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "reports/spans/span_class.h"
#include "reports/table/text_table.h"
#include "scenarios/base/values/time_text.h"
#include "sim/applications/explain/explain.h"

namespace foretrace::explain {
namespace {

constexpr double kSmallest = 0.005;  // share of the time; less is rounding
constexpr const char* kHostWork = "the host's own work between calls";

/// "the host's own work between calls (743 us; the GPU works 27 us)"
std::string host_work_words(double host_seconds, double gpu_seconds) {
  return fmt::format("{} ({}; the GPU works {})", kHostWork, format_time(host_seconds * 1e9),
                     format_time(gpu_seconds * 1e9));
}
std::string host_work_text(const Explanation& explanation) {
  return host_work_words(explanation.host_seconds, explanation.gpu_seconds);
}

/// "region 'step' in line 12 (the longest; process 1, 10 executions)".
std::string what_is_explained(const Explanation& explanation) {
  if (explanation.region.empty()) return "the whole run";
  const std::string thread =
      explanation.thread.empty() ? "" : fmt::format(", host thread '{}'", explanation.thread);
  return fmt::format("region '{}' in line {} (the longest; process {}{}, {} execution{}){}",
                     explanation.region, explanation.line, explanation.process, thread,
                     explanation.executions, explanation.executions == 1 ? "" : "s",
                     explanation.outlasted ? " with the work that it starts" : "");
}

std::string share(double part, double whole) {
  return whole <= 0 ? "-" : fmt::format("{:.1f} %", 100 * part / whole);
}

std::string gpu_name(const GpuTime& gpu) {
  return fmt::format("process {}, device {}", gpu.process, gpu.device);
}

/// The largest share of a GPU's time in which it computes nothing.
double most_idle(const Timeline& timeline) {
  double most = 0;
  for (const GpuTime& gpu : gpu_times(timeline)) {
    const auto kernels = static_cast<double>(gpu.by_use[static_cast<std::size_t>(Use::Kernel)]);
    if (gpu.ns > 0) most = std::max(most, 1 - kernels / static_cast<double>(gpu.ns));
  }
  return most;
}

const char* rest_name(const Explanation& explanation) {
  return explanation.rest_waits_for_host_work() ? kHostWork : "the work itself";
}

std::string rest_words(const Explanation& explanation) {
  if (!explanation.rest_waits_for_host_work()) return rest_name(explanation);
  return host_work_words(explanation.rest_host_seconds, explanation.rest_gpu_seconds);
}

/// What was simulated and cannot be saved.
std::string about_bounds(const Explanation& explanation) {
  std::string text;
  for (const Gain& gain : explanation.gains) {
    if (gain.simulated <= 0) continue;
    text += fmt::format("{}: simulated {}, cut to {}: {}\n", name_of(gain.cause),
                        format_time(gain.simulated * 1e9), format_time(gain.seconds * 1e9),
                        gain.bound);
  }
  return text;
}

/// Where communication costs more than the time in which only it runs.
std::string about_slower_kernels(const Timeline& timeline, const Explanation& explanation) {
  constexpr double kMore = 0.01;
  const double idle = most_idle(timeline);
  for (const Gain& gain : explanation.gains) {
    if (gain.cause != Cause::Communication || gain.gain <= idle + kMore) continue;
    return fmt::format(
        "communication costs more than the {} in which a GPU computes nothing: kernels are slower "
        "beside NCCL's, which take SMs and memory from them\n",
        format_percent(idle));
  }
  return {};
}

}  // namespace

std::string headline_of(const Explanation& explanation) {
  if (!explanation.ends) {
    return "the run never ends, so nothing explains its time; foretrace check says who waits";
  }
  const std::string run =
      fmt::format("{}: {}", what_is_explained(explanation), format_time(explanation.seconds * 1e9));
  if (explanation.gains.empty() || explanation.gains.front().gain < kSmallest) {
    return run + ", and none of the causes costs time; " +
           (explanation.waits_for_host_work() ? host_work_text(explanation) + " does"
                                              : "the work itself does");
  }
  const Gain& first = explanation.gains.front();
  const bool stays = explanation.rest_waits_for_host_work();  // no call: what the program says
  const bool takes = first.cause == Cause::Host && !stays && explanation.waits_for_host_work();
  return fmt::format("{}, first of all by {}{}: without it {} ({} less){}", run,
                     name_of(first.cause),
                     takes ? ", most of it " + host_work_text(explanation) : "",
                     format_time(first.seconds * 1e9), format_percent(first.gain),
                     stays ? "; what is left waits for " + rest_words(explanation) : "");
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
  std::string rest;
  if (explanation.rest_seconds > 0 && explanation.seconds > 0) {
    rest = fmt::format("without all of these at once: {}, {} less: {}\n",
                       format_time(explanation.rest_seconds * 1e9),
                       format_percent(1 - explanation.rest_seconds / explanation.seconds),
                       rest_words(explanation));
  }
  rest += about_bounds(explanation);
  rest += about_slower_kernels(timeline, explanation);
  return fmt::format("{}\n\n{}{}\n{}\ncritical path: {}waiting {}\n{}", headline_of(explanation),
                     causes.empty() ? "" : causes.markdown(), rest,
                     gpus.empty() ? "" : gpus.markdown(),
                     on_path,
                     share(static_cast<double>(path.nothing_ns), static_cast<double>(path.ns)),
                     explanation.rests_on_text);
}

std::string csv_of(const Explanation& explanation) {
  TextTable table;
  using enum TextTable::Align;
  for (const char* const name :
       {"cause", "with", "seconds", "gain", "simulated_seconds", "bound"}) {
    table.column(name, Left);
  }
  const auto row = [&](const std::string& cause, const std::string& with, const Gain& gain) {
    table.row({cause, with, fmt::format("{:.9f}", gain.seconds), fmt::format("{:.6f}", gain.gain),
               gain.simulated > 0 ? fmt::format("{:.9f}", gain.simulated) : "", gain.bound});
  };
  row("", "the run as it is", {.seconds = explanation.seconds});
  for (const Gain& gain : explanation.gains) {
    row(std::string{name_of(gain.cause)}, std::string{change_of(gain.cause)}, gain);
  }
  if (explanation.rest_seconds > 0 && explanation.seconds > 0) {
    row("all", rest_name(explanation),
        {.seconds = explanation.rest_seconds,
         .gain = 1 - explanation.rest_seconds / explanation.seconds});
  }
  return table.csv();
}

std::string json_of(const Timeline& timeline, const Explanation& explanation) {
  using Json = nlohmann::ordered_json;
  Json json{{"schema_version", 1},
            {"kind", "explanation"},
            {"scenario", timeline.origin.scenario},
            {"ends", explanation.ends},
            {"region", explanation.region},
            {"line", explanation.line},
            {"thread", explanation.thread},
            {"process", explanation.process},
            {"executions", explanation.executions},
            {"seconds", explanation.seconds},
            {"seconds_without_all", explanation.rest_seconds},
            {"without_all_it_is", rest_name(explanation)},
            {"waits_for", explanation.waits_for_host_work() ? kHostWork : ""},
            {"host_work_seconds", explanation.host_seconds},
            {"gpu_work_seconds", explanation.gpu_seconds},
            {"causes", Json::array()},
            {"gpus", Json::array()}};
  for (const Gain& gain : explanation.gains) {
    Json row{{"cause", name_of(gain.cause)},
             {"with", change_of(gain.cause)},
             {"seconds", gain.seconds},
             {"gain", gain.gain}};
    if (gain.simulated > 0) {
      row["simulated_seconds"] = gain.simulated;
      row["bound"] = gain.bound;
    }
    json["causes"].push_back(std::move(row));
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
  if (explanation.ends) json["rests_on"] = Json::parse(explanation.rests_on_json);
  return json.dump(2) + "\n";
}

}  // namespace foretrace::explain
