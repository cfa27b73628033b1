#include "reports/spans/span_join.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/reports/timeline_builder.h"

namespace foretrace {
namespace {

/// Any spans of few ops, instances, parts and lanes, so that keys often meet and often do not.
Timeline random_timeline(bool measured) {
  test::TimelineBuilder b{measured};
  for (int op = 0; op < 3; ++op) b.op("gemm", op + 1);
  b.host(0);
  b.host(1);
  b.stream("compute", 0, 0);
  b.stream("copy", 1, 1);
  b.timeline.lanes.push_back({LaneKind::Stream, 0, 0, 1, "copies"});
  const auto count = *rc::gen::inRange(0, 40);
  for (int i = 0; i < count; ++i) {
    const std::int64_t begin = *rc::gen::inRange(0, 1000);
    b.span(*rc::gen::inRange(0U, 3U), *rc::gen::inRange(0U, 5U), begin, begin + 10,
           *rc::gen::inRange<std::uint16_t>(0, 3), *rc::gen::inRange<std::uint64_t>(0, 3));
  }
  return b.timeline;
}

std::vector<std::uint32_t> all_spans(const Timeline& timeline) {
  std::vector<std::uint32_t> indices(timeline.spans.size());
  std::iota(indices.begin(), indices.end(), 0U);
  return indices;
}

RC_GTEST_PROP(JoinSpans, DropsNothingAndTakesNothingTwice, ()) {
  const Timeline a = random_timeline(false);
  const Timeline b = random_timeline(true);
  std::vector<std::uint32_t> first;
  std::vector<std::uint32_t> second;
  for (const SpanPair& pair : join_spans(a, b)) {
    if (pair.first != kNoSpan) first.push_back(pair.first);
    if (pair.second != kNoSpan) second.push_back(pair.second);
    RC_ASSERT(pair.first != kNoSpan || pair.second != kNoSpan);
  }
  std::ranges::sort(first);
  std::ranges::sort(second);
  RC_ASSERT(first == all_spans(a));
  RC_ASSERT(second == all_spans(b));
}

RC_GTEST_PROP(JoinSpans, PairsOnlyEqualKeys, ()) {
  const Timeline a = random_timeline(false);
  const Timeline b = random_timeline(true);
  for (const SpanPair& pair : join_spans(a, b)) {
    if (pair.first == kNoSpan || pair.second == kNoSpan) continue;
    const Span& x = a.spans[pair.first];
    const Span& y = b.spans[pair.second];
    RC_ASSERT(x.op == y.op && x.instance == y.instance && x.part == y.part);
    RC_ASSERT(a.lanes[x.lane].process == b.lanes[y.lane].process);
    RC_ASSERT(a.lanes[x.lane].device == b.lanes[y.lane].device);
  }
}

RC_GTEST_PROP(JoinSpans, LeavesNoTwoSpansApartThatShareAKey, ()) {
  const Timeline a = random_timeline(false);
  const auto pairs = join_spans(a, a);
  RC_ASSERT(std::ranges::all_of(pairs, [](const SpanPair& p) { return p.first == p.second; }));
}

}  // namespace
}  // namespace foretrace
