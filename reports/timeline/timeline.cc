#include "reports/timeline/timeline.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "reports/timeline/statistics.h"

namespace foretrace {

std::optional<double> mean_launch_ns(const ProcessStart& start) {
  if (start.launch_ns.empty()) return std::nullopt;
  const double sum = std::accumulate(start.launch_ns.begin(), start.launch_ns.end(), 0.0);
  return sum / static_cast<double>(start.launch_ns.size());
}

std::size_t program_ops(const Timeline& timeline) {
  const auto first = std::ranges::find_if(timeline.ops, &OpRow::captured);
  return static_cast<std::size_t>(first - timeline.ops.begin());
}

std::uint32_t intern(Timeline& timeline, const SpanDetail& detail) {
  auto& all = timeline.details;
  const auto index = static_cast<std::size_t>(std::ranges::find(all, detail) - all.begin());
  if (index == all.size()) all.push_back(detail);
  return static_cast<std::uint32_t>(index);
}

std::optional<std::int64_t> elapsed_ns(const Timeline& timeline, const Span& call) {
  if (call.part != 0 || timeline.ops[call.op].kind != "event_elapsed_time") return std::nullopt;
  const std::uint32_t process = timeline.lanes[call.lane].process;
  const auto found = std::ranges::find_if(timeline.regions, [&](const RegionSamples& region) {
    return region.op == call.op && region.instance == call.instance && region.process == process;
  });
  if (found == timeline.regions.end() || found->samples_ns.empty()) return std::nullopt;
  const std::vector<double> samples(found->samples_ns.begin(), found->samples_ns.end());
  return std::llround(median(samples));
}

}  // namespace foretrace
