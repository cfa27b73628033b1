#include "sim/applications/training/step_shares.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "reports/spans/span_class.h"
#include "reports/uses/intervals.h"
#include "reports/uses/uses.h"

namespace foretrace::sim {
namespace {

/// What a process's GPUs do in its window.
struct Activity {
  explain::Times kernels;     ///< and copies, but none of NCCL
  explain::Times joined;      ///< kernels of NCCL, from when all their ranks run them
  explain::Times everything;  ///< kernels of NCCL from their begin
  explain::Times others;      ///< all of it but sends and receives
};

explain::Times united(explain::Times some, const explain::Times& others) {
  some.insert(some.end(), others.begin(), others.end());
  return some;
}

double lasting(explain::Times spans) {
  return static_cast<double>(explain::length(explain::joined(std::move(spans))));
}

void add_inside(explain::Times& spans, const TimeWindow& window, explain::Times::value_type span) {
  span = {std::max(span.first, window.from_ns), std::min(span.second, window.to_ns)};
  if (span.first >= span.second) return;
  const bool goes_on =
      !spans.empty() && span.first >= spans.back().first && span.first <= spans.back().second;
  if (goes_on) {
    spans.back().second = std::max(spans.back().second, span.second);
  } else {
    spans.push_back(span);
  }
}

/// Until when each kernel of NCCL waited, by its lane and begin.
using Waits = std::map<std::pair<std::uint32_t, std::int64_t>, std::int64_t>;

Waits waits_of(const Timeline& timeline) {
  Waits waits;
  for (const RankWait& wait : timeline.waits) {
    waits[{wait.lane, wait.begin_ns}] = wait.until_ns;
  }
  return waits;
}

/// By operation: what it is on a device.
std::vector<SpanClass> classes_of(const Timeline& timeline) {
  Lane stream;
  stream.kind = LaneKind::Stream;
  std::vector<SpanClass> classes;
  classes.reserve(timeline.ops.size());
  for (const OpRow& op : timeline.ops) classes.push_back(class_of(op, stream));
  return classes;
}

/// A timeline has spans by the million: one pass for all processes.
std::map<std::uint32_t, Activity> activities_of(
    const Timeline& timeline, const std::map<std::uint32_t, TimeWindow>& windows) {
  const Waits waits = waits_of(timeline);
  const std::vector<SpanClass> classes = classes_of(timeline);
  std::map<std::uint32_t, Activity> activities;
  std::vector<std::pair<Activity*, TimeWindow>> of_lane;
  for (const Lane& lane : timeline.lanes) {
    const auto window = windows.find(lane.process);
    const bool counts = window != windows.end() && lane.device != kNoDevice;
    of_lane.emplace_back(counts ? &activities[lane.process] : nullptr,
                         counts ? window->second : TimeWindow{});
  }
  for (const Span& span : timeline.spans) {
    const auto& [activity, window] = of_lane[span.lane];
    if (activity == nullptr || span.end_ns <= window.from_ns || span.begin_ns >= window.to_ns)
      continue;
    const SpanClass kind = classes[span.op];
    if (kind != SpanClass::Kernel && kind != SpanClass::Nccl && kind != SpanClass::Copy) continue;
    add_inside(activity->everything, window, {span.begin_ns, span.end_ns});
    if (kind != SpanClass::Nccl || !explain::moves_to_one_peer(timeline.ops[span.op])) {
      add_inside(activity->others, window, {span.begin_ns, span.end_ns});
    }
    if (kind != SpanClass::Nccl) {
      add_inside(activity->kernels, window, {span.begin_ns, span.end_ns});
      continue;
    }
    const auto wait = waits.find({span.lane, span.begin_ns});
    const std::int64_t joined = wait == waits.end() ? span.begin_ns : wait->second;
    add_inside(activity->joined, window, {joined, span.end_ns});
  }
  return activities;
}

}  // namespace

ProcessShares shares_in(const Timeline& timeline,
                        const std::map<std::uint32_t, TimeWindow>& windows) {
  std::map<std::uint32_t, Activity> activities = activities_of(timeline, windows);
  ProcessShares shares;
  for (const auto& [process, window] : windows) {
    const Activity& of = activities[process];
    const auto whole =
        static_cast<double>(std::max<std::int64_t>(1, window.to_ns - window.from_ns));
    const double computing = lasting(of.kernels);
    const double working = lasting(united(of.kernels, of.joined));
    const double busy = lasting(of.everything);
    shares[process] = {computing / whole, (working - computing) / whole, (busy - working) / whole,
                       1 - busy / whole, (busy - lasting(of.others)) / whole};
  }
  return shares;
}

StepShares mean_of(const ProcessShares& shares) {
  StepShares mean;
  double processes = 0;
  for (const auto& [process, of] : shares) {
    mean = one_behind_the_other(mean, processes, of, 1);
    ++processes;
  }
  return mean;
}

StepShares one_behind_the_other(const StepShares& first, double first_seconds,
                                const StepShares& second, double second_seconds) {
  const auto mixed = [&](double StepShares::*share) {
    return (first.*share * first_seconds + second.*share * second_seconds) /
           (first_seconds + second_seconds);
  };
  return {mixed(&StepShares::computing), mixed(&StepShares::communication),
          mixed(&StepShares::waiting), mixed(&StepShares::idle), mixed(&StepShares::bubble)};
}

}  // namespace foretrace::sim
