#include "sim/explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "reports/spans/span_class.h"
#include "reports/table/text_table.h"
#include "scenarios/program/program_walk.h"
#include "scenarios/text/errors.h"
#include "sim/engine/children.h"
#include "sim/explain/covered_time.h"

namespace foretrace::explain {
namespace {

constexpr double kSmallest = 0.005;  // share of the time; less is rounding

/// A region, or an event_elapsed_time with an id.
struct TimedOp {
  std::uint32_t op{};
  std::string name;
  int line{};
  const HostThread* thread{};
};

/// What is timed in a program, and what of it is one time: those of one name in several processes.
/// Where a process has two of one name, each is its own.
struct TimedOps {
  std::vector<TimedOp> ops;
  std::map<std::uint32_t, std::size_t> time_of_op;
  std::size_t count = 0;
};

std::vector<TimedOp> timed_ops(const Program& program) {
  std::vector<TimedOp> ops;
  for_each_op(program, [&](const HostThread& thread, const Op& op, Around) {
    const auto* region = std::get_if<Region>(&op.kind);
    if (region == nullptr && !is_timed(op)) return;
    ops.push_back({op.id.value, region != nullptr ? region->name : op.label, op.line, &thread});
  });
  return ops;
}

TimedOps times_of(const Program& program) {
  TimedOps times{.ops = timed_ops(program), .time_of_op = {}};
  std::map<std::string, std::map<std::uint32_t, int>> by_process;
  for (const TimedOp& one : times.ops) {
    for (const std::uint32_t process : one.thread->processes) ++by_process[one.name][process];
  }
  std::map<std::string, std::size_t> of_name;
  for (const TimedOp& one : times.ops) {
    const bool is_alone = std::ranges::all_of(by_process[one.name],
                                              [](const auto& count) { return count.second == 1; });
    std::size_t time = times.count;
    if (is_alone) time = of_name.emplace(one.name, times.count).first->second;
    if (time == times.count) ++times.count;
    times.time_of_op.emplace(one.op, time);
  }
  return times;
}

/// All executions of one time in the process where they take longest.
struct Longest {
  double seconds = 0;
  double process = 0;
  double executions = 0;
  double op = 0;
  double covered = 0;  ///< s, of any process: with the work that they start (covered_time.h)
};
constexpr std::size_t kNumbers = 5;

/// By time, and the whole run at last: as numbers, for a child to send.
std::vector<double> numbers_of(const Program& program, const Timeline& timeline,
                               const TimedOps& times) {
  const CoveredTimes covered = covered_times(program, timeline);
  std::vector<std::map<std::uint32_t, Longest>> by_time(times.count);
  for (const RegionSamples& region : timeline.regions) {
    Longest& here = by_time[times.time_of_op.at(region.op)][region.process];
    here.seconds += static_cast<double>(region.samples_ns.front()) * 1e-9;
    here.process = region.process;
    here.op = region.op;
    ++here.executions;
    const auto with_work = covered.find({region.op, region.process});
    here.covered = with_work == covered.end() ? here.seconds
                                              : static_cast<double>(with_work->second) * 1e-9;
  }
  std::vector<double> numbers;
  const auto append = [&](const Longest& one) {
    numbers.insert(numbers.end(),
                   {one.seconds, one.process, one.executions, one.op, one.covered});
  };
  for (const auto& of_process : by_time) {
    Longest longest;
    double most_covered = 0;
    for (const auto& [process, one] : of_process) {
      if (one.seconds > longest.seconds) longest = one;
      most_covered = std::max(most_covered, one.covered);
    }
    longest.covered = most_covered;
    append(longest);
  }
  Longest whole;
  for (const Span& span : timeline.spans) {
    whole.seconds = std::max(whole.seconds, static_cast<double>(span.end_ns) * 1e-9);
  }
  whole.covered = whole.seconds;
  append(whole);
  return numbers;
}

Longest longest_at(const std::vector<double>& numbers, std::size_t time) {
  const auto at = numbers.begin() + static_cast<std::ptrdiff_t>(kNumbers * time);
  return {at[0], at[1], at[2], at[3], at[4]};
}

/// What the run is judged by: the time whose executions take longest together; without one that
/// takes any, the whole run.
std::size_t judged_by(const std::vector<double>& numbers) {
  const std::size_t whole = numbers.size() / kNumbers - 1;
  std::size_t longest = whole;
  for (std::size_t time = 0; time < whole; ++time) {
    const double least = longest == whole ? 0 : longest_at(numbers, longest).seconds;
    if (longest_at(numbers, time).seconds > least) longest = time;
  }
  return longest;
}

/// "in line 12", and the host thread where another one has that name in that line, too.
void tell_place(const TimedOps& times, std::uint32_t op, Explanation& explanation) {
  const auto at = std::ranges::find(times.ops, op, &TimedOp::op);
  explanation.region = at->name;
  explanation.line = at->line;
  const bool is_known = std::ranges::none_of(times.ops, [&](const TimedOp& other) {
    return other.name == at->name && other.line == at->line &&
           other.thread->name != at->thread->name;
  });
  if (!is_known) explanation.thread = at->thread->name;
}

/// None where there is nothing to take away, or what is left does not end.
std::vector<double> numbers_without(std::span<const Cause> causes, Program program,
                                    Machine machine, const TimedOps& times, Simulated simulated) {
  try {
    bool any = false;
    for (const Cause cause : causes) any |= take_away(cause, program, machine);
    if (!any) return {};
    const Timeline timeline = simulate(program, machine, Fidelity::Flow, simulated);
    if (timeline.outcome.kind != Outcome::Kind::Completed) return {};
    return numbers_of(program, timeline, times);
  } catch (const UsageError&) {
    return {};
  }
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

Explanation explain(const Program& program, const Machine& machine, Simulated simulated) {
  const TimedOps times = times_of(program);
  std::vector<Job> jobs{[&] {
    const Timeline timeline = simulate(program, machine, Fidelity::Flow, simulated);
    const bool ends = timeline.outcome.kind == Outcome::Kind::Completed;
    return ends ? numbers_of(program, timeline, times) : std::vector<double>{};
  }};
  for (const Cause& cause : kCauses) {
    jobs.emplace_back(
        [&] { return numbers_without({&cause, 1}, program, machine, times, simulated); });
  }
  jobs.emplace_back([&] { return numbers_without(kCauses, program, machine, times, simulated); });
  const auto numbers = run_in_children(jobs);
  if (numbers[0].empty()) {
    Explanation never;
    never.ends = false;
    return never;
  }
  const std::size_t judged = judged_by(numbers[0]);
  const Longest longest = longest_at(numbers[0], judged);
  constexpr double kSame = 1.005;
  Explanation explanation{.seconds = longest.covered,
                          .outlasted = longest.covered > kSame * longest.seconds,
                          .region = "",
                          .thread = "",
                          .process = static_cast<std::uint32_t>(longest.process),
                          .executions = static_cast<std::size_t>(longest.executions),
                          .gains = {},
                          .rest_seconds = 0};
  if (judged < times.count) tell_place(times, static_cast<std::uint32_t>(longest.op), explanation);
  for (std::size_t i = 0; i < kCauses.size(); ++i) {
    if (numbers[i + 1].empty()) continue;
    const Longest then = longest_at(numbers[i + 1], judged);
    if (then.seconds <= 0) continue;  // it is not run then
    const double without = then.covered;
    explanation.gains.push_back(
        {kCauses[i], without, explanation.seconds > 0 ? 1 - without / explanation.seconds : 0});
  }
  std::ranges::stable_sort(explanation.gains, std::greater{}, &Gain::gain);
  if (const auto& rest = numbers[kCauses.size() + 1]; !rest.empty()) {
    explanation.rest_seconds = longest_at(rest, judged).covered;
  }
  return explanation;
}

namespace {

/// The largest share of a GPU's time in which it computes nothing.
double most_idle(const Timeline& timeline) {
  double most = 0;
  for (const GpuTime& gpu : gpu_times(timeline)) {
    const auto kernels = static_cast<double>(gpu.by_use[static_cast<std::size_t>(Use::Kernel)]);
    if (gpu.ns > 0) most = std::max(most, 1 - kernels / static_cast<double>(gpu.ns));
  }
  return most;
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
    rest = fmt::format("without all of these at once: {}, {} less: the work itself\n",
                       format_time(explanation.rest_seconds * 1e9),
                       format_percent(1 - explanation.rest_seconds / explanation.seconds));
  }
  rest += about_slower_kernels(timeline, explanation);
  return fmt::format("{}\n\n{}{}\n{}\ncritical path: {}waiting {}\n", headline_of(explanation),
                     causes.empty() ? "" : causes.markdown(), rest,
                     gpus.empty() ? "" : gpus.markdown(),
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
            {"line", explanation.line},
            {"thread", explanation.thread},
            {"process", explanation.process},
            {"executions", explanation.executions},
            {"seconds", explanation.seconds},
            {"seconds_without_all", explanation.rest_seconds},
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
