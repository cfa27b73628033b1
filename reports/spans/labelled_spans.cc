#include "reports/spans/labelled_spans.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace foretrace {

std::vector<const Span*> spans_of(const Timeline& timeline, const std::string& label,
                                  SpanSide side) {
  std::vector<const Span*> spans;
  for (const Span& span : timeline.spans) {
    const LaneKind lane = timeline.lanes[span.lane].kind;
    const bool wanted =
        side == SpanSide::Host ? lane == LaneKind::HostThread : lane == LaneKind::Stream;
    if (wanted && timeline.ops[span.op].label == label) spans.push_back(&span);
  }
  return spans;
}

std::uint32_t process_of(const Timeline& timeline, const Span& span) {
  return timeline.lanes[span.lane].process;
}

std::vector<LabelledExecution> executions_of(const Timeline& timeline, const std::string& label,
                                             SpanSide side) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, Interval> found;
  for (const Span* span : spans_of(timeline, label, side)) {
    const Lane& lane = timeline.lanes[span->lane];
    const Interval whole{span->begin_ns, span->end_ns};
    const auto [at, is_new] = found.try_emplace({lane.process, lane.device, span->instance}, whole);
    at->second.begin_ns = std::min(at->second.begin_ns, whole.begin_ns);
    at->second.end_ns = std::max(at->second.end_ns, whole.end_ns);
  }
  std::vector<LabelledExecution> executions;
  for (const auto& [key, interval] : found) {
    executions.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), interval});
  }
  return executions;
}

std::vector<LabelledExecution> executions_of(const Timeline& timeline, const std::string& label) {
  auto executions = executions_of(timeline, label, SpanSide::Device);
  return executions.empty() ? executions_of(timeline, label, SpanSide::Host) : executions;
}

std::vector<LabelledExecution> matching(const std::vector<LabelledExecution>& all,
                                        const LabelledExecution& one) {
  const auto keep_if = [](std::vector<LabelledExecution> from, auto wanted) {
    std::erase_if(from, [&](const LabelledExecution& e) { return !wanted(e); });
    return from;
  };
  auto same_process =
      keep_if(all, [&](const LabelledExecution& e) { return e.process == one.process; });
  const auto& candidates = same_process.empty() ? all : same_process;
  auto same_instance =
      keep_if(candidates, [&](const LabelledExecution& e) { return e.instance == one.instance; });
  if (!same_instance.empty()) return same_instance;
  const bool only_one = std::ranges::all_of(candidates, [&](const LabelledExecution& e) {
    return e.instance == candidates.front().instance;
  });
  return only_one ? candidates : std::vector<LabelledExecution>{};
}

}  // namespace foretrace
