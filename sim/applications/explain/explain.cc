#include "sim/applications/explain/explain.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "scenarios/program/program_walk.h"
#include "scenarios/base/text/errors.h"
#include "sim/engine/children.h"
#include "sim/applications/explain/covered_time.h"

namespace foretrace::explain {
namespace {

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
  // Of the process that has most (covered_time.h), in s:
  double covered = 0;  ///< with the work that they start
  double host = 0;
  double device = 0;
  double alone = 0;
};
constexpr std::size_t kNumbers = 8;

/// Where nothing is covered the time stands for it.
void set_covered(Longest& one, const Covered& covered) {
  one.covered = static_cast<double>(covered.ns) * 1e-9;
  one.host = static_cast<double>(covered.host_ns) * 1e-9;
  one.device = static_cast<double>(covered.device_ns) * 1e-9;
  one.alone = static_cast<double>(covered.alone_ns) * 1e-9;
}

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
    here.covered = here.seconds;
    if (with_work != covered.end()) set_covered(here, with_work->second);
  }
  std::vector<double> numbers;
  const auto append = [&](const Longest& one) {
    numbers.insert(numbers.end(),
                   {one.seconds, one.process, one.executions, one.op, one.covered, one.host,
                    one.device, one.alone});
  };
  for (const auto& of_process : by_time) {
    Longest longest, most;
    double alone = 0;
    for (const auto& [process, one] : of_process) {
      if (one.seconds > longest.seconds) longest = one;
      if (one.covered > most.covered) most = one;
      alone = std::max(alone, one.alone);
    }
    append({longest.seconds, longest.process, longest.executions, longest.op, most.covered,
            most.host, most.device, alone});
  }
  Longest whole;
  for (const Span& span : timeline.spans) {
    whole.seconds = std::max(whole.seconds, static_cast<double>(span.end_ns) * 1e-9);
  }
  set_covered(whole, covered_by_all(timeline));
  append(whole);
  return numbers;
}

Longest longest_at(const std::vector<double>& numbers, std::size_t time) {
  const auto at = numbers.begin() + static_cast<std::ptrdiff_t>(kNumbers * time);
  return {at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7]};
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

}  // namespace

Gain gain_of(Cause cause, double seconds, double without, double least, const std::string& bound) {
  constexpr double kRounding = 1e-6;
  if (seconds <= 0) return {cause, without, 0};
  if (without > seconds) {
    const bool is_said = without > (1 + kRounding) * seconds;
    return {cause, seconds, 0, is_said ? without : 0,
            is_said ? "the run as it is: what no longer takes turns shares the GPU" : ""};
  }
  if (without < (1 - kRounding) * least) {
    return {cause, least, std::max(0.0, 1 - least / seconds), without, bound};
  }
  return {cause, without, 1 - without / seconds};
}

Explanation explain(const Program& program, const Machine& machine, Simulated simulated) {
  const TimedOps times = times_of(program);
  std::vector<Job> jobs{[&] {
    const Timeline timeline = simulate(program, machine, Fidelity::Flow, simulated);
    const bool ends = timeline.outcome.kind == Outcome::Kind::Completed;
    if (!ends) return std::vector<double>{};
    std::vector<double> numbers = numbers_of(program, timeline, times);
    const std::vector<double> rests = foretrace::numbers_of(rests_of(timeline, machine));
    numbers.insert(numbers.end(), rests.begin(), rests.end());
    return numbers;
  }};
  for (const Cause& cause : kCauses) {
    jobs.emplace_back(
        [&] { return numbers_without({&cause, 1}, program, machine, times, simulated); });
  }
  jobs.emplace_back([&] { return numbers_without(kCauses, program, machine, times, simulated); });
  auto numbers = run_in_children(jobs);
  if (numbers[0].empty()) {
    Explanation never;
    never.ends = false;
    return never;
  }
  const std::size_t of_times = kNumbers * (times.count + 1);
  const RestsOn rests = rests_from(std::span{numbers[0]}.subspan(of_times));
  numbers[0].resize(of_times);
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
                          .host_seconds = longest.host,
                          .gpu_seconds = longest.device,
                          .rests_on = rests,
                          .rests_on_text = rests_text(rests, machine),
                          .rests_on_json = rests_json(rests, machine).dump()};
  if (judged < times.count) tell_place(times, static_cast<std::uint32_t>(longest.op), explanation);
  for (std::size_t i = 0; i < kCauses.size(); ++i) {
    if (numbers[i + 1].empty()) continue;
    const Longest then = longest_at(numbers[i + 1], judged);
    if (then.seconds <= 0) continue;  // it is not run then
    // A straggler's kernels themselves become shorter.
    const double least = kCauses[i] == Cause::Straggler ? 0 : longest.alone;
    explanation.gains.push_back(
        gain_of(kCauses[i], explanation.seconds, then.covered, least,
                "in so much of it one kernel runs, and nothing beside it"));
  }
  std::ranges::stable_sort(explanation.gains, std::greater{}, &Gain::gain);
  if (const auto& rest = numbers[kCauses.size() + 1]; !rest.empty()) {
    const Longest then = longest_at(rest, judged);
    explanation.rest_seconds = std::min(then.covered, explanation.seconds);
    explanation.rest_host_seconds = then.host;
    explanation.rest_gpu_seconds = then.device;
  }
  return explanation;
}

}  // namespace foretrace::explain
