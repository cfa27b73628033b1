#include "reports/spans/span_join.h"

#include <algorithm>
#include <compare>
#include <limits>
#include <tuple>

namespace foretrace {
namespace {

struct Entry {
  std::uint32_t op, part, process, device;
  std::uint64_t instance;
  std::int64_t begin_ns;
  std::uint32_t span;

  auto key() const { return std::tie(op, part, instance, process, device); }
  auto order() const { return std::tie(op, part, instance, process, device, begin_ns, span); }
};

std::vector<Entry> sorted_entries(const SpansOfLanes& timeline) {
  std::vector<Entry> entries;
  entries.reserve(timeline.spans.size());
  for (std::uint32_t i = 0; i < timeline.spans.size(); ++i) {
    const Span& span = timeline.spans[i];
    const Lane& lane = timeline.lanes[span.lane];
    entries.push_back(
        {span.op, span.part, lane.process, lane.device, span.instance, span.begin_ns, i});
  }
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) { return a.order() < b.order(); });
  return entries;
}

}  // namespace

std::vector<SpanPair> join_spans(const Timeline& first, const Timeline& second) {
  return join_spans({first.lanes, first.spans}, {second.lanes, second.spans});
}

std::vector<SpanPair> join_spans(const SpansOfLanes& first, const SpansOfLanes& second) {
  const auto a = sorted_entries(first);
  const auto b = sorted_entries(second);
  std::vector<SpanPair> pairs;
  pairs.reserve(std::max(a.size(), b.size()));
  auto i = a.begin();
  auto j = b.begin();
  while (i != a.end() || j != b.end()) {
    const bool take_first = j == b.end() || (i != a.end() && i->key() <= j->key());
    const bool take_second = i == a.end() || (j != b.end() && j->key() <= i->key());
    SpanPair pair;
    if (take_first) pair.first = (i++)->span;
    if (take_second) pair.second = (j++)->span;
    pairs.push_back(pair);
  }
  return pairs;
}

std::int64_t first_begin_ns(const Timeline& timeline) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const Span& span : timeline.spans) first = std::min(first, span.begin_ns);
  return first == std::numeric_limits<std::int64_t>::max() ? 0 : first;
}

}  // namespace foretrace
