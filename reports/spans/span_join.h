// Pairs the spans of two timelines on (op, instance, process, device, part). Nothing is dropped: a
// span without a partner is a pair with one side empty.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reports/timeline/timeline.h"

namespace foretrace {

inline constexpr std::uint32_t kNoSpan = 0xffffffff;

struct SpanPair {
  std::uint32_t first = kNoSpan;   ///< index into the first timeline's spans
  std::uint32_t second = kNoSpan;  ///< index into the second one's
};

/// Ordered by (op, part, instance, process, device). Spans that share a key (a call that launches
/// the same part twice) pair in the order of their begin.
std::vector<SpanPair> join_spans(const Timeline& first, const Timeline& second);

struct SpansOfLanes {
  std::span<const Lane> lanes;
  std::span<const Span> spans;
};
/// The same of spans that stand for those of a timeline.
std::vector<SpanPair> join_spans(const SpansOfLanes& first, const SpansOfLanes& second);

/// When the run began: the earliest begin of all spans; 0 when there are none. Offsets of
/// two timelines are compared from there.
std::int64_t first_begin_ns(const Timeline& timeline);

}  // namespace foretrace
