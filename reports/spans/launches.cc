#include "reports/spans/launches.h"

#include <algorithm>
#include <tuple>

namespace foretrace {
namespace {

struct Call {
  std::uint32_t op, process;
  std::uint64_t instance;
  std::uint32_t span;
  auto key() const { return std::tie(op, process, instance); }
};

Call call_of(const Timeline& timeline, std::uint32_t index) {
  const Span& span = timeline.spans[index];
  return {span.op, timeline.lanes[span.lane].process, span.instance, index};
}

}  // namespace

std::vector<Flow> launch_flows(const Timeline& timeline) {
  const auto lane_kind = [&](std::uint32_t i) {
    return timeline.lanes[timeline.spans[i].lane].kind;
  };
  std::vector<Call> calls;
  for (std::uint32_t i = 0; i < timeline.spans.size(); ++i) {
    if (lane_kind(i) == LaneKind::HostThread) calls.push_back(call_of(timeline, i));
  }
  std::ranges::stable_sort(calls, [](const Call& a, const Call& b) { return a.key() < b.key(); });
  std::vector<Flow> flows;
  for (std::uint32_t i = 0; i < timeline.spans.size(); ++i) {
    if (lane_kind(i) != LaneKind::Stream) continue;
    const Call wanted = call_of(timeline, i);
    const auto found =
        std::lower_bound(calls.begin(), calls.end(), wanted,
                         [](const Call& a, const Call& b) { return a.key() < b.key(); });
    if (found != calls.end() && found->key() == wanted.key()) {
      flows.push_back({found->span, i, FlowKind::Launch});
    }
  }
  return flows;
}

}  // namespace foretrace
