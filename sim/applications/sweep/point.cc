#include "sim/applications/sweep/point.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "models/trust/trust.h"
#include "models/what_if/what_if.h"
#include "scenarios/read/scenario.h"
#include "scenarios/base/text/errors.h"
#include "sim/environment_check.h"
#include "sim/machine_check.h"
#include "sim/applications/training/captured_usage.h"
#include "sim/applications/training/usage.h"

namespace foretrace::sweep {
namespace {

using Json = nlohmann::ordered_json;

/// Throws UsageError for what the machine cannot run.
Timeline simulated(const Sweep& sweep, const Point& point, const Machine& machine) {
  const ParameterValues parameters = point.parameters(sweep.axes);
  if (const auto training = read_training(sweep.text, sweep.file, parameters)) {
    const auto verdict = sim::memory_verdict(training->expansion.memory, machine);
    if (!verdict.fits) throw UsageError{"does not fit into a GPU's memory"};
  }
  const auto capture = read_captured(sweep.text, sweep.file, parameters);
  if (capture) {
    const std::string reason = sim::why_it_does_not_fit(capture->expansion, machine);
    if (!reason.empty()) throw UsageError{reason};
  }
  auto read = read_scenario(sweep.text, sweep.file, parameters);
  if (!read) throw UsageError{render(read.error(), sweep.text)};
  const Program& program = read->program;
  if (const Diagnostics problems = check_fits(program, machine); !problems.empty()) {
    throw UsageError{render(problems, "")};
  }
  for (const Diagnostics& problems :
       {refused_collectives(program, machine), unsupported_types(program, machine)}) {
    if (!problems.empty()) throw UsageError{render(problems, sweep.text)};
  }
  Timeline timeline;
  try {
    timeline = simulate(program, machine, sweep.fidelity);
  } catch (const TooLarge& error) {
    throw UsageError{render(error.problems(), sweep.text)};
  }
  if (timeline.outcome.kind != Outcome::Kind::Completed) {
    const auto& why = timeline.outcome.explanation;
    throw UsageError{why.empty() ? "did not end" : why.front()};
  }
  if (capture) {
    sim::widen_bands(timeline, machine, sim::captured_usage(program, timeline), program);
  }
  return timeline;
}

/// What a region's time is made of, and how far each may be off: what pairs of points share
/// (paired.h).
Json decided_by(const RegionSamples& region, const Machine& machine) {
  Json all = Json::array();
  for (const auto& [parameter, share] : region.decided_by) {
    const std::optional<Param> param = param_named(parameter);
    // A nominal rate that others are given as shares of: what is not known of them is theirs.
    if (!param || *param == Param::NvlinkBandwidth) continue;
    all.push_back(
        {{"parameter", parameter}, {"share", share}, {"spread", spread_of(machine, *param)}});
  }
  return all;
}

/// To the nanosecond, as timelines have it.
double rounded(double us) { return std::round(us * 1e3) / 1e3; }

Json regions(const Timeline& timeline, const Machine& machine) {
  struct Longest {
    double us = 0;
    const RegionSamples* region = nullptr;
  };
  std::vector<std::string> order;
  std::map<std::string, Longest> longest;
  for (const RegionSamples& region : timeline.regions) {
    const double us =
        static_cast<double>(region.samples_ns.front()) * 1e-3 / static_cast<double>(region.per);
    const auto [at, is_new] = longest.try_emplace(region.name);
    if (is_new) order.push_back(region.name);
    if (us >= at->second.us) {
      at->second = {us, &region};
    }
  }
  Json all = Json::array();
  for (const std::string& name : order) {
    const Longest& of = longest.at(name);
    all.push_back({{"name", name},
                   {"us", rounded(of.us)},
                   {"low_us", rounded(of.us * of.region->low_factor)},
                   {"high_us", rounded(of.us * of.region->high_factor)},
                   {"decided_by", decided_by(*of.region, machine)}});
  }
  return all;
}

/// The first error and its hint, as one line: what else a terminal shows is the same for every
/// point.
std::string in_one_line(const std::string& text) {
  constexpr std::string_view kHint = "\n  hint: ";
  constexpr std::string_view kError = ": error: ";
  const std::size_t error = text.find(kError);  // a warning may be before it
  const std::size_t begin_of_line = error == std::string::npos ? 0 : text.rfind('\n', error) + 1;
  const std::size_t end = std::min(text.find('\n', begin_of_line), text.size());
  std::string line = text.substr(begin_of_line, end - begin_of_line);
  const std::size_t second = text.find(kError, end);  // a hint behind it is of another one
  const std::size_t hint = text.find(kHint, end);
  if (hint == std::string::npos || hint > second) return line;
  const std::size_t begin = hint + kHint.size();
  return line + " (hint: " + text.substr(begin, text.find('\n', begin) - begin) + ")";
}

}  // namespace

Json row_of(const Sweep& sweep, const Point& point) {
  Json row{{"point", point.number}, {"machine", point.machine(sweep.axes)}};
  for (std::size_t i = 0; i < sweep.axes.size(); ++i) {
    const Axis& axis = sweep.axes[i];
    if (axis.kind == Kind::Machine) continue;
    row[axis.kind == Kind::Set ? "set" : "with"][axis.name] = point.values[i];
  }
  return row;
}

Json predict(const Sweep& sweep, const Point& point) {
  Json row = row_of(sweep, point);
  try {
    const Machine machine =
        load_machine_with(point.machine(sweep.axes), point.what_ifs(sweep.axes));
    const Timeline timeline = simulated(sweep, point, machine);
    std::int64_t end_ns = 0;
    for (const Span& span : timeline.spans) end_ns = std::max(end_ns, span.end_ns);
    row["total_us"] = rounded(static_cast<double>(end_ns) * 1e-3);
    row["regions"] = regions(timeline, machine);
  } catch (const UsageError& error) {
    row["error"] = in_one_line(error.what());
  }
  return row;
}

}  // namespace foretrace::sweep
