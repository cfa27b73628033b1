#include "sim/record/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reports/timeline/origin.h"

namespace foretrace::sim {
namespace {

/// Executions of all operations in one process: sizes the span store once, without doubling.
std::size_t count_executions(const Block& block, std::size_t times) {
  std::size_t total = 0;
  for (const Op& op : block) {
    if (const auto* repeat = std::get_if<Repeat>(&op.kind)) {
      total += count_executions(repeat->ops, times * repeat->times);
    } else if (const auto* region = std::get_if<Region>(&op.kind)) {
      total += count_executions(region->ops, times);
    } else if (const auto* group = std::get_if<NcclGroup>(&op.kind)) {
      total += count_executions(group->ops, times) + times;
    } else {
      total += times;
    }
  }
  return total;
}

}  // namespace

Recorder::Recorder(const Program& program, const Machine& machine)
    : bands_{machine}, totals_(program.processes) {
  timeline_.origin = origin_of(program);
  timeline_.origin.machine = machine.name;
  timeline_.origin.producer = fmt::format("foretrace {}", FORETRACE_VERSION);
  timeline_.ops = op_rows(program);
  std::size_t executions = 0;
  for (const HostThread& thread : program.threads) {
    executions += count_executions(thread.ops, 1) * thread.processes.size();
  }
  timeline_.spans.reserve(executions * 2);  // the host's call and what it makes a device do
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
