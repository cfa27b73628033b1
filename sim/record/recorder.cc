#include "sim/record/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "models/cost/host.h"
#include "models/trust/blind.h"
#include "reports/timeline/origin.h"
#include "scenarios/program/program_walk.h"

namespace foretrace::sim {
namespace {

std::optional<std::int64_t> launch_ns(const Program& program, const Machine& machine) {
  const std::int64_t ns =
      round_to_ns(cost::launch_time(machine, program.processes).value_or(Duration{0}));
  return ns > 0 ? std::optional{ns} : std::nullopt;
}

/// Spans that the store has place for from the begin: 1.3 GB, of which only what is used is taken.
constexpr std::uint64_t kMostReserved = std::uint64_t{1} << 25;

}  // namespace

Recorder::Recorder(const Program& program, const Machine& machine, Says says)
    : machine_{machine},
      says_{says},
      bands_{machine},
      tallies_(program.processes),
      places_(kParamCount) {
  timeline_.origin = origin_of(program);
  timeline_.origin.machine = machine.name;
  timeline_.origin.producer = fmt::format("foretrace {}", FORETRACE_VERSION);
  timeline_.origin.launch_ns = launch_ns(program, machine);
  timeline_.ops = op_rows(program);
  std::uint64_t calls = 0;
  for (const foretrace::HostThread& thread : program.threads) {
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

void Recorder::add(Total& total, std::uint32_t detail, double ns) {
  const SpanDetail& banded = timeline_.details[detail];
  total.ns += ns;
  total.low_ns += ns * banded.low_factor;
  total.high_ns += ns * banded.high_factor;
  total.guessed_ns += ns * bands_.guessed(detail);
  for (const auto& [param, share] : bands_.shares(detail)) {
    std::uint32_t& place = places_[static_cast<std::size_t>(param)];
    if (place == 0) {
      params_.push_back(param);
      place = static_cast<std::uint32_t>(params_.size());
    }
    total.share_ns.resize(params_.size());
    total.share_ns[place - 1] += ns * share;
  }
}

const Recorder::Total& Recorder::total_of(std::uint32_t process) {
  Tally& tally = tallies_[process];
  for (const std::uint32_t detail : tally.changed) {
    const double ns = std::exchange(tally.ns[detail], 0);
    if (timeline_.details[detail].high_factor > 1) add(tally.total, detail, ns);
  }
  tally.changed.clear();
  return tally.total;
}

void Recorder::begin_region(const Execution& execution, std::uint32_t process) {
  opened_[key_of(execution, process)] = total_of(process);
}

/// A region's band is what its operations on this process have on average, weighted by duration:
/// as if all that are alike were off together. Where the machine went through a blind round, it is
/// what that showed of regions with these shares.
void Recorder::set_band(RegionSamples& samples, const Total& before, const Total& after) const {
  const double ns = after.ns - before.ns;
  if (ns <= 0) return;
  samples.low_factor = (after.low_ns - before.low_ns) / ns;
  samples.high_factor = (after.high_ns - before.high_ns) / ns;
  std::vector<Share> shares;
  for (std::size_t i = 0; i < after.share_ns.size(); ++i) {
    const double earlier = i < before.share_ns.size() ? before.share_ns[i] : 0;
    shares.push_back({params_[i], (after.share_ns[i] - earlier) / ns});
  }
  std::ranges::sort(
      shares, [](const Share& a, const Share& b) { return std::abs(a.share) > std::abs(b.share); });
  samples.decided_by = deciding(shares);
  // What blind rounds showed is of regions: classes that are off each for itself.
  if (const std::optional<double> off =
          blind_spread(machine_, shares, (after.guessed_ns - before.guessed_ns) / ns)) {
    samples.high_factor = 1 + *off;
    samples.low_factor = 1 / samples.high_factor;
  }
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
    set_band(samples, opened->second, total_of(process));
    opened_.erase(opened);
  }
  timeline_.regions.push_back(std::move(samples));
}

void Recorder::elapsed(const Execution& execution, std::uint32_t process, TimePoint start,
                       TimePoint end) {
  RegionSamples samples;
  samples.op = execution.op->id.value;
  samples.instance = execution.instance;
  samples.process = process;
  samples.name = execution.op->label;
  samples.samples_ns = {round_to_ns(end - start)};
  const std::int64_t start_ns = round_to_ns(start.time_since_epoch());
  const std::int64_t end_ns = round_to_ns(end.time_since_epoch());
  Total between;
  for (auto at = timeline_.spans.rbegin(); at != timeline_.spans.rend(); ++at) {
    if (at->end_ns <= start_ns) break;  // spans are noted as they end
    if (at->part == 0 || at->end_ns > end_ns) continue;
    if (timeline_.lanes[at->lane].process != process) continue;
    if (timeline_.details[at->detail].high_factor <= 1) continue;
    add(between, at->detail, static_cast<double>(at->end_ns - at->begin_ns));
  }
  set_band(samples, {}, between);
  timeline_.regions.push_back(std::move(samples));
}

Timeline Recorder::finish(Outcome outcome) && {
  timeline_.outcome = std::move(outcome);
  return std::move(timeline_);
}

}  // namespace foretrace::sim
