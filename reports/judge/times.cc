#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "reports/compare/compare.h"
#include "reports/judge/judges.h"
#include "reports/spans/labelled_spans.h"
#include "reports/table/text_table.h"

namespace foretrace {
namespace {

bool within(double ns, const std::optional<Duration>& at_least,
            const std::optional<Duration>& at_most) {
  const auto to_ns = [](Duration d) { return static_cast<double>(d.count()) / 1e3; };
  return (!at_least || ns >= to_ns(*at_least)) && (!at_most || ns <= to_ns(*at_most));
}

/// Every span's duration is within the bounds.
Verdict judge_durations(const Expectation& expectation, const std::vector<const Span*>& spans,
                        std::string_view what) {
  if (spans.empty()) return broken(fmt::format("no {} of '{}'", what, expectation.spans.at(0)));
  const auto duration = [](const Span* span) { return span->end_ns - span->begin_ns; };
  const auto [shortest, longest] = std::ranges::minmax_element(spans, {}, duration);
  const auto low = static_cast<double>(duration(*shortest));
  const auto high = static_cast<double>(duration(*longest));
  const bool held = within(low, expectation.at_least, {}) && within(high, {}, expectation.at_most);
  if (spans.size() == 1) return {held ? Held::Yes : Held::No, format_time(low)};
  return {held ? Held::Yes : Held::No,
          expectation.at_least && expectation.at_most
              ? fmt::format("{} .. {}, of {}", format_time(low), format_time(high), spans.size())
          : expectation.at_least
              ? fmt::format("{} at least, of {}", format_time(low), spans.size())
              : fmt::format("{} at most, of {}", format_time(high), spans.size())};
}

/// The reported medians of all regions of this name, summed over loops.
std::optional<double> region_ns(const Timeline& timeline, const std::string& name) {
  std::optional<double> total;
  for (const RegionRow& row : compare_regions(timeline, timeline, 0)) {
    if (timeline.ops[row.op].label != name || !row.first) continue;
    total = total.value_or(0) + row.first->median_ns;
  }
  return total;
}

/// No figure of a region breaks what is said of it. The time between two events is measured since
/// it is a result: earlier measurements lack it.
Verdict without_region(const Timeline& timeline, const std::string& name) {
  const bool is_elapsed = std::ranges::any_of(timeline.ops, [&](const OpRow& op) {
    return op.kind == "event_elapsed_time" && (op.label == name || op.label.empty());
  });
  if (is_elapsed && timeline.origin.measured) {
    return {Held::Undecided, fmt::format("measured before '{}' was a result", name)};
  }
  return broken(fmt::format("no region '{}'", name));
}

}  // namespace

Verdict judge_host_call(const Expectation& expectation, const Timeline& timeline) {
  return judge_durations(expectation, spans_of(timeline, expectation.spans.at(0), SpanSide::Host),
                         "host call");
}

Verdict judge_lasts(const Expectation& expectation, const Timeline& timeline) {
  return judge_durations(expectation, spans_of(timeline, expectation.spans.at(0), SpanSide::Device),
                         "device span");
}

/// NCCL runs a channel in each block of its kernel; both timelines say how many.
Verdict judge_channels(const Expectation& expectation, const Timeline& timeline) {
  const std::string& label = expectation.spans.at(0);
  std::uint32_t least = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t most = 0;
  for (const Span* span : spans_of(timeline, label, SpanSide::Device)) {
    const std::uint32_t channels = timeline.details[span->detail].channels;
    least = std::min(least, channels);
    most = std::max(most, channels);
  }
  if (most == 0) return broken(fmt::format("no channels of '{}'", label));
  const bool held = least >= expectation.fraction.value_or(0) &&
                    (!expectation.fraction_at_most || most <= *expectation.fraction_at_most);
  return {held ? Held::Yes : Held::No,
          least == most ? fmt::format("{}", most) : fmt::format("{} .. {}", least, most)};
}

Verdict judge_total(const Expectation& expectation, const Timeline& timeline) {
  const std::string& name = expectation.spans.at(0);
  const auto ns = region_ns(timeline, name);
  if (!ns) return without_region(timeline, name);
  return {within(*ns, expectation.at_least, expectation.at_most) ? Held::Yes : Held::No,
          format_time(*ns)};
}

Verdict judge_ratio(const Expectation& expectation, const Timeline& timeline) {
  const auto a = region_ns(timeline, expectation.spans.at(0));
  const auto b = region_ns(timeline, expectation.spans.at(1));
  if (!a || !b) return without_region(timeline, expectation.spans.at(a ? 1 : 0));
  if (*b <= 0) return broken(fmt::format("region '{}' lasts 0 ns", expectation.spans.at(1)));
  const double ratio = *a / *b;
  const bool held = ratio >= expectation.fraction.value_or(0) &&
                    (!expectation.fraction_at_most || ratio <= *expectation.fraction_at_most);
  return {held ? Held::Yes : Held::No,
          fmt::format("{:.3g} = {} / {}", ratio, format_time(*a), format_time(*b))};
}

}  // namespace foretrace
