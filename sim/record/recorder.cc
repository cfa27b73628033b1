#include "sim/record/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reports/timeline/origin.h"
#include "scenarios/program/program_walk.h"

namespace foretrace::sim {
namespace {

/// Spans that the store has place for from the begin: 1.3 GB, of which only what is used is taken.
constexpr std::uint64_t kMostReserved = std::uint64_t{1} << 25;

}  // namespace

Recorder::Recorder(const Program& program, const Machine& machine)
    : bands_{machine}, totals_(program.processes) {
  timeline_.origin = origin_of(program);
  timeline_.origin.machine = machine.name;
  timeline_.origin.producer = fmt::format("foretrace {}", FORETRACE_VERSION);
  timeline_.origin.fit_scenarios = machine.fit_scenarios;
  timeline_.ops = op_rows(program);
  std::uint64_t calls = 0;
  for (const HostThread& thread : program.threads) {
    calls += times_capped(count_executions(thread.ops), thread.processes.size());
    calls = std::min(calls, kMostReserved);
  }
  // The host's call and what it makes a device do: without doubling the store again and again.
  timeline_.spans.reserve(std::min(calls * 2, kMostReserved));
}

std::uint32_t Recorder::add_lane(Lane lane) {
  timeline_.lanes.push_back(std::move(lane));
  return static_cast<std::uint32_t>(timeline_.lanes.size() - 1);
}

void Recorder::begin_region(const Execution& execution, std::uint32_t process) {
  opened_[key_of(execution, process)] = totals_[process];
}

void Recorder::add_to_total(const Span& span) {
  const SpanDetail& detail = timeline_.details[span.detail];
  if (detail.low_factor == detail.high_factor) return;
  const auto ns = static_cast<double>(span.end_ns - span.begin_ns);
  Total& total = totals_[timeline_.lanes[span.lane].process];
  total.ns += ns;
  total.low_ns += ns * detail.low_factor;
  total.high_ns += ns * detail.high_factor;
}

void Recorder::region(const Execution& execution, std::uint32_t process, TimePoint begin,
                      TimePoint end) {
  const auto& region = std::get<Region>(execution.op->kind);
  RegionSamples samples;
  samples.op = execution.op->id.value;
  samples.instance = execution.instance;
  samples.process = process;
  samples.name = region.name;
  samples.per = region.per;
  samples.samples_ns = {round_to_ns(end - begin)};
  const auto opened = opened_.find(key_of(execution, process));
  if (opened != opened_.end()) {
    const Total& before = opened->second;
    const Total& after = totals_[process];
    if (const double ns = after.ns - before.ns; ns > 0) {
      samples.low_factor = (after.low_ns - before.low_ns) / ns;
      samples.high_factor = (after.high_ns - before.high_ns) / ns;
    }
    opened_.erase(opened);
  }
  timeline_.regions.push_back(std::move(samples));
}

Timeline Recorder::finish(Outcome outcome) && {
  timeline_.outcome = std::move(outcome);
  return std::move(timeline_);
}

}  // namespace foretrace::sim
