#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "reports/judge/judges.h"
#include "reports/spans/labelled_spans.h"
#include "reports/spans/span_class.h"
#include "reports/table/text_table.h"

namespace foretrace {
namespace {

/// Where at least `depth` of the spans run at once; ascending and disjoint.
std::vector<Interval> covered(const std::vector<const Span*>& spans, int depth) {
  std::vector<std::pair<std::int64_t, int>> edges;
  for (const Span* span : spans) {
    edges.emplace_back(span->begin_ns, +1);
    edges.emplace_back(span->end_ns, -1);
  }
  std::ranges::sort(edges);  // at equal times ends come before begins
  std::vector<Interval> intervals;
  int running = 0;
  for (const auto& [at, change] : edges) {
    const int before = running;
    running += change;
    if (before < depth && running >= depth) intervals.push_back({at, at});
    if (before >= depth && running < depth) intervals.back().end_ns = at;
  }
  return intervals;
}

std::int64_t time_inside(const Span& span, const std::vector<Interval>& intervals) {
  std::int64_t inside = 0;
  auto at = std::ranges::upper_bound(intervals, span.begin_ns, {}, &Interval::end_ns);
  for (; at != intervals.end() && at->begin_ns < span.end_ns; ++at) {
    inside += std::min(span.end_ns, at->end_ns) - std::max(span.begin_ns, at->begin_ns);
  }
  return inside;
}

/// What the operation does on devices; of the host's own work, its spans there.
std::vector<const Span*> spans_at_work(const Timeline& timeline, const std::string& label) {
  auto spans = spans_of(timeline, label, SpanSide::Device);
  if (!spans.empty()) return spans;
  spans = spans_of(timeline, label, SpanSide::Host);
  std::erase_if(spans, [&](const Span* span) {
    return class_of(timeline.ops[span->op], timeline.lanes[span->lane]) != SpanClass::HostWork;
  });
  return spans;
}

}  // namespace

Verdict judge_overlap(const Expectation& expectation, const Timeline& timeline) {
  const std::string& a = expectation.spans.at(0);
  const std::string& b = expectation.spans.at(1);
  const auto spans_a = spans_at_work(timeline, a);
  const auto spans_b = spans_at_work(timeline, b);
  for (const auto& [label, spans] : {std::pair{&a, &spans_a}, std::pair{&b, &spans_b}}) {
    if (spans->empty()) return broken(fmt::format("no device span of '{}'", *label));
  }
  const int depth = a == b ? 2 : 1;
  std::map<std::uint32_t, std::vector<const Span*>> by_process;
  for (const Span* span : spans_b) by_process[process_of(timeline, *span)].push_back(span);
  std::map<std::uint32_t, std::vector<Interval>> covered_in;
  for (const auto& [process, spans] : by_process) covered_in[process] = covered(spans, depth);
  const auto covered_anywhere = covered(spans_b, depth);
  std::int64_t inside = 0;
  std::int64_t total = 0;
  for (const Span* span : spans_a) {
    const auto found = covered_in.find(process_of(timeline, *span));
    inside += time_inside(*span, found != covered_in.end() ? found->second : covered_anywhere);
    total += span->end_ns - span->begin_ns;
  }
  if (total == 0) return broken(fmt::format("the device spans of '{}' last 0 ns", a));
  const double share = static_cast<double>(inside) / static_cast<double>(total);
  return {share >= expectation.fraction.value_or(0) ? Held::Yes : Held::No,
          fmt::format("{} of {}", format_percent(share), format_time(static_cast<double>(total)))};
}

}  // namespace foretrace
