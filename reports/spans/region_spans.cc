#include "reports/spans/region_spans.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace foretrace {
namespace {

/// The regions around each operation, outermost first: OpIds are depth first.
std::vector<std::vector<std::uint32_t>> regions_around(const std::vector<OpRow>& ops) {
  std::vector<std::vector<std::uint32_t>> around(ops.size());
  for (std::uint32_t region = 0; region < ops.size(); ++region) {
    if (ops[region].kind != "region") continue;
    const std::size_t end = std::min<std::size_t>(ops.size(), region + 1 + ops[region].inside);
    for (std::size_t op = region + 1; op < end; ++op) around[op].push_back(region);
  }
  return around;
}

/// The instance of a block around an operation that runs as `instance`: without the indices of the
/// loops between them.
std::uint64_t outer_instance(std::uint64_t instance, const OpRow& op, const OpRow& outer) {
  for (std::size_t loop = outer.loops.size(); loop < op.loops.size(); ++loop) {
    instance /= std::max<std::uint64_t>(op.loops[loop], 1);
  }
  return instance;
}

}  // namespace

std::vector<RegionSpan> region_spans(const Timeline& timeline) {
  const auto around = regions_around(timeline.ops);
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, RegionSpan> found;
  for (const Span& span : timeline.spans) {
    if (timeline.lanes[span.lane].kind != LaneKind::HostThread) continue;
    std::uint32_t depth = 0;
    for (const std::uint32_t region : around[span.op]) {
      const std::uint64_t instance =
          outer_instance(span.instance, timeline.ops[span.op], timeline.ops[region]);
      const RegionSpan first{region, span.lane, instance, span.begin_ns, span.end_ns, depth++};
      RegionSpan& whole = found.try_emplace({span.lane, region, instance}, first).first->second;
      whole.begin_ns = std::min(whole.begin_ns, span.begin_ns);
      whole.end_ns = std::max(whole.end_ns, span.end_ns);
    }
  }
  std::vector<RegionSpan> spans;
  for (const auto& [key, span] : found) spans.push_back(span);
  std::ranges::stable_sort(spans, {}, [](const RegionSpan& span) {
    return std::tuple{span.lane, span.begin_ns, span.depth};
  });
  return spans;
}

}  // namespace foretrace
