#include "reports/expectations.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "reports/compare.h"
#include "reports/text_table.h"
#include "scenarios/errors.h"

namespace foretrace {
namespace {

struct Interval {
  std::int64_t begin_ns, end_ns;
};

enum class Part { Host, Device };

std::vector<const Span*> spans_of(const Timeline& timeline, const std::string& label, Part part) {
  std::vector<const Span*> spans;
  for (const Span& span : timeline.spans) {
    const LaneKind lane = timeline.lanes[span.lane].kind;
    const bool wanted =
        part == Part::Host ? lane == LaneKind::HostThread : lane == LaneKind::Stream;
    if (wanted && timeline.ops[span.op].label == label) spans.push_back(&span);
  }
  return spans;
}

std::uint32_t process_of(const Timeline& timeline, const Span& span) {
  return timeline.lanes[span.lane].process;
}

Verdict broken(std::string why) { return {Held::No, std::move(why)}; }

// ---- overlap
// -------------------------------------------------------------------------------------

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

Verdict judge_overlap(const Expectation& expectation, const Timeline& timeline) {
  const std::string& a = expectation.spans.at(0);
  const std::string& b = expectation.spans.at(1);
  const auto spans_a = spans_of(timeline, a, Part::Device);
  const auto spans_b = spans_of(timeline, b, Part::Device);
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

// ---- order
// ---------------------------------------------------------------------------------------

/// One execution of an operation: from its first span's begin to its last span's end.
struct Execution {
  std::uint32_t process{}, device{};
  std::uint64_t instance{};
  Interval interval{};
};

std::vector<Execution> executions_of(const Timeline& timeline, const std::string& label) {
  auto spans = spans_of(timeline, label, Part::Device);
  if (spans.empty()) spans = spans_of(timeline, label, Part::Host);
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, Interval> found;
  for (const Span* span : spans) {
    const Lane& lane = timeline.lanes[span->lane];
    const Interval whole{span->begin_ns, span->end_ns};
    const auto [at, is_new] = found.try_emplace({lane.process, lane.device, span->instance}, whole);
    at->second.begin_ns = std::min(at->second.begin_ns, whole.begin_ns);
    at->second.end_ns = std::max(at->second.end_ns, whole.end_ns);
  }
  std::vector<Execution> executions;
  for (const auto& [key, interval] : found) {
    executions.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), interval});
  }
  return executions;
}

/// The executions of `first` that one of `then` must not overtake.
std::vector<Execution> matching(const std::vector<Execution>& first, const Execution& then) {
  const auto keep_if = [](std::vector<Execution> from, auto wanted) {
    std::erase_if(from, [&](const Execution& e) { return !wanted(e); });
    return from;
  };
  auto same_process = keep_if(first, [&](const Execution& e) { return e.process == then.process; });
  const auto& candidates = same_process.empty() ? first : same_process;
  auto same_instance =
      keep_if(candidates, [&](const Execution& e) { return e.instance == then.instance; });
  if (!same_instance.empty()) return same_instance;
  const bool only_one = std::ranges::all_of(
      candidates, [&](const Execution& e) { return e.instance == candidates.front().instance; });
  return only_one ? candidates : std::vector<Execution>{};
}

Verdict judge_order(const Expectation& expectation, const Timeline& timeline) {
  const std::string& first_label = expectation.spans.at(0);
  const std::string& then_label = expectation.spans.at(1);
  const auto first = executions_of(timeline, first_label);
  const auto then = executions_of(timeline, then_label);
  if (first.empty()) return broken(fmt::format("no span of '{}'", first_label));
  if (then.empty()) return broken(fmt::format("no span of '{}'", then_label));
  std::size_t judged = 0;
  std::size_t undecided = 0;
  std::size_t too_early = 0;
  std::int64_t closest_ns = std::numeric_limits<std::int64_t>::max();
  for (const Execution& later : then) {
    const auto earlier = matching(first, later);
    if (earlier.empty()) {
      return broken(
          fmt::format("no instance of '{}' matches every one of '{}'", first_label, then_label));
    }
    for (const Execution& one : earlier) {
      const auto distance_ns = later.interval.begin_ns - one.interval.end_ns;
      const bool one_clock = one.process == later.process && one.device == later.device;
      closest_ns = std::min(closest_ns, distance_ns);
      if (!one_clock && std::abs(distance_ns) <= timeline.origin.clock_error_bound_ns) {
        ++undecided;
      } else {
        ++judged;
        if (distance_ns < 0) ++too_early;
      }
    }
  }
  std::string found = too_early != 0
                          ? fmt::format("{} of {} begin too early, by up to {}", too_early, judged,
                                        format_time(static_cast<double>(-closest_ns)))
                          : fmt::format("{} in order, {} apart at least", judged,
                                        format_time(static_cast<double>(closest_ns)));
  if (undecided != 0) {
    found += fmt::format("; {} undecided within the clocks' {}", undecided,
                         format_time(static_cast<double>(timeline.origin.clock_error_bound_ns)));
  }
  const Held held = too_early != 0 ? Held::No : judged == 0 ? Held::Undecided : Held::Yes;
  return {held, std::move(found)};
}

// ---- host_free, total, ratio
// ---------------------------------------------------------------------

bool within(double ns, const std::optional<Duration>& at_least,
            const std::optional<Duration>& at_most) {
  const auto to_ns = [](Duration d) { return static_cast<double>(d.count()) / 1e3; };
  return (!at_least || ns >= to_ns(*at_least)) && (!at_most || ns <= to_ns(*at_most));
}

Verdict judge_host_free(const Expectation& expectation, const Timeline& timeline) {
  const std::string& label = expectation.spans.at(0);
  const auto calls = spans_of(timeline, label, Part::Host);
  if (calls.empty()) return broken(fmt::format("no host call of '{}'", label));
  std::int64_t longest = 0;
  for (const Span* call : calls) longest = std::max(longest, call->end_ns - call->begin_ns);
  const auto ns = static_cast<double>(longest);
  return {within(ns, {}, expectation.at_most) ? Held::Yes : Held::No,
          calls.size() == 1 ? format_time(ns)
                            : fmt::format("{} at most, of {}", format_time(ns), calls.size())};
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

Verdict judge_total(const Expectation& expectation, const Timeline& timeline) {
  const std::string& name = expectation.spans.at(0);
  const auto ns = region_ns(timeline, name);
  if (!ns) return broken(fmt::format("no region '{}'", name));
  return {within(*ns, expectation.at_least, expectation.at_most) ? Held::Yes : Held::No,
          format_time(*ns)};
}

Verdict judge_ratio(const Expectation& expectation, const Timeline& timeline) {
  const auto a = region_ns(timeline, expectation.spans.at(0));
  const auto b = region_ns(timeline, expectation.spans.at(1));
  if (!a || !b) return broken(fmt::format("no region '{}'", expectation.spans.at(a ? 1 : 0)));
  if (*b <= 0) return broken(fmt::format("region '{}' lasts 0 ns", expectation.spans.at(1)));
  const double ratio = *a / *b;
  const bool held = ratio >= expectation.fraction.value_or(0) &&
                    (!expectation.fraction_at_most || ratio <= *expectation.fraction_at_most);
  return {held ? Held::Yes : Held::No,
          fmt::format("{:.3g} = {} / {}", ratio, format_time(*a), format_time(*b))};
}

std::string bounds(const Expectation& e) {
  const auto ns = [](Duration d) { return format_time(static_cast<double>(d.count()) / 1e3); };
  std::string text;
  if (e.at_least) text += " at least " + ns(*e.at_least);
  if (e.at_most) text += (e.at_least ? std::string{" and at most "} : " at most ") + ns(*e.at_most);
  return text;
}

}  // namespace

Verdict judge(const Expectation& expectation, const Timeline& timeline) {
  if (expectation.kind == "overlap") return judge_overlap(expectation, timeline);
  if (expectation.kind == "order") return judge_order(expectation, timeline);
  if (expectation.kind == "host_free") return judge_host_free(expectation, timeline);
  if (expectation.kind == "total") return judge_total(expectation, timeline);
  if (expectation.kind == "ratio") return judge_ratio(expectation, timeline);
  throw UsageError{fmt::format("expectations of kind '{}' cannot be judged", expectation.kind)};
}

std::string describe(const Expectation& e) {
  const auto name = [&](std::size_t i) { return i < e.spans.size() ? e.spans[i] : "?"; };
  if (e.kind == "overlap") {
    return fmt::format("{} overlaps {} at least {}", name(0), name(1),
                       format_percent(e.fraction.value_or(0)));
  }
  if (e.kind == "order") return fmt::format("{} before {}", name(0), name(1));
  if (e.kind == "host_free") return fmt::format("host free after {}{}", name(0), bounds(e));
  if (e.kind == "total") return fmt::format("{}{}", name(0), bounds(e));
  std::string text = fmt::format("{} / {}", name(0), name(1));
  if (e.fraction) text += fmt::format(" at least {:g}", *e.fraction);
  if (e.fraction_at_most) {
    text += fmt::format("{} at most {:g}", e.fraction ? " and" : "", *e.fraction_at_most);
  }
  return text;
}

}  // namespace foretrace
