// Which of two moments comes first: a distance for each pair of executions, judged where the clocks
// allow it.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "reports/judge/judges.h"
#include "reports/spans/labelled_spans.h"
#include "reports/table/text_table.h"

namespace foretrace {
namespace {

std::string time_text(std::int64_t ns) { return format_time(static_cast<double>(ns)); }

/// Counts distances; a negative one breaks the expectation.
class Distances {
 public:
  explicit Distances(const Timeline& timeline)
      : error_bound_ns_{timeline.origin.clock_error_bound_ns} {}

  void add(const LabelledExecution& a, const LabelledExecution& b, std::int64_t distance_ns) {
    const bool one_clock = a.process == b.process && a.device == b.device;
    closest_ns_ = std::min(closest_ns_, distance_ns);
    if (!one_clock && std::abs(distance_ns) <= error_bound_ns_) {
      ++undecided_;
    } else {
      ++judged_;
      if (distance_ns < 0) ++wrong_;
    }
  }

  std::int64_t closest_ns() const { return closest_ns_; }
  std::size_t judged() const { return judged_; }
  std::size_t wrong() const { return wrong_; }

  Verdict verdict(std::string found) const {
    if (undecided_ != 0) {
      found += fmt::format("; {} undecided within the clocks' {}", undecided_,
                           time_text(error_bound_ns_));
    }
    const Held held = wrong_ != 0 ? Held::No : judged_ == 0 ? Held::Undecided : Held::Yes;
    return {held, std::move(found)};
  }

 private:
  std::int64_t error_bound_ns_;
  std::size_t judged_ = 0, undecided_ = 0, wrong_ = 0;
  std::int64_t closest_ns_ = std::numeric_limits<std::int64_t>::max();
};

/// Calls `visit(one, its match)`; false, with the reason in `verdict`, where spans are missing.
template <class Visit>
bool for_each_match(const std::vector<LabelledExecution>& ones, const std::string& one_label,
                    const std::vector<LabelledExecution>& others, const std::string& other_label,
                    Verdict& verdict, const Visit& visit) {
  for (const LabelledExecution& one : ones) {
    const auto matches = matching(others, one);
    if (matches.empty()) {
      verdict = broken(
          fmt::format("no instance of '{}' matches every one of '{}'", other_label, one_label));
      return false;
    }
    for (const LabelledExecution& match : matches) visit(one, match);
  }
  return true;
}

/// How long before the end of its `end_of` each call returns; negative: after it.
Verdict judge_return(const Expectation& expectation, const Timeline& timeline, bool before) {
  const std::string& call_label = expectation.spans.at(0);
  const std::string& end_label = expectation.spans.at(1);
  const auto calls = executions_of(timeline, call_label, SpanSide::Host);
  const auto ends = executions_of(timeline, end_label, SpanSide::Device);
  if (calls.empty()) return broken(fmt::format("no host call of '{}'", call_label));
  if (ends.empty()) return broken(fmt::format("no device span of '{}'", end_label));
  Distances distances{timeline};
  Verdict verdict;
  const auto visit = [&](const LabelledExecution& call, const LabelledExecution& end) {
    const std::int64_t ahead_ns = end.interval.end_ns - call.interval.end_ns;
    distances.add(call, end, before ? ahead_ns : -ahead_ns);
  };
  if (!for_each_match(calls, call_label, ends, end_label, verdict, visit)) return verdict;
  const std::string right = before ? "before" : "after";
  if (distances.wrong() == 0) {
    const std::int64_t apart_ns = distances.closest_ns();
    return distances.verdict(apart_ns < 0
                                 ? fmt::format("returns as it ends")
                                 : fmt::format("returns {} {} it ends{}", time_text(apart_ns),
                                               right, calls.size() > 1 ? " at least" : ""));
  }
  const std::string wrong = before ? "after" : "before";
  return distances.verdict(fmt::format("{} of {} return {} it ends, by up to {}", distances.wrong(),
                                       distances.judged(), wrong,
                                       time_text(-distances.closest_ns())));
}

}  // namespace

Verdict judge_order(const Expectation& expectation, const Timeline& timeline) {
  const std::string& first_label = expectation.spans.at(0);
  const std::string& then_label = expectation.spans.at(1);
  const auto first = executions_of(timeline, first_label);
  const auto then = executions_of(timeline, then_label);
  if (first.empty()) return broken(fmt::format("no span of '{}'", first_label));
  if (then.empty()) return broken(fmt::format("no span of '{}'", then_label));
  Distances distances{timeline};
  Verdict verdict;
  const auto visit = [&](const LabelledExecution& later, const LabelledExecution& earlier) {
    distances.add(later, earlier, later.interval.begin_ns - earlier.interval.end_ns);
  };
  if (!for_each_match(then, then_label, first, first_label, verdict, visit)) return verdict;
  return distances.verdict(distances.wrong() != 0
                               ? fmt::format("{} of {} begin too early, by up to {}",
                                             distances.wrong(), distances.judged(),
                                             time_text(-distances.closest_ns()))
                               : fmt::format("{} in order, {} apart at least", distances.judged(),
                                             time_text(distances.closest_ns())));
}

Verdict judge_returns_before(const Expectation& expectation, const Timeline& timeline) {
  return judge_return(expectation, timeline, true);
}

Verdict judge_returns_after(const Expectation& expectation, const Timeline& timeline) {
  return judge_return(expectation, timeline, false);
}

Verdict judge_begins_within(const Expectation& expectation, const Timeline& timeline) {
  const std::string& after_label = expectation.spans.at(0);
  const std::string& then_label = expectation.spans.at(1);
  const auto after = executions_of(timeline, after_label, SpanSide::Device);
  const auto then = executions_of(timeline, then_label, SpanSide::Device);
  if (after.empty()) return broken(fmt::format("no device span of '{}'", after_label));
  if (then.empty()) return broken(fmt::format("no device span of '{}'", then_label));
  const std::int64_t within_ns = expectation.at_most.value_or(Duration{0}).count() / 1000;
  Distances distances{timeline};
  Verdict verdict;
  const auto visit = [&](const LabelledExecution& later, const LabelledExecution& earlier) {
    distances.add(later, earlier, within_ns - (later.interval.begin_ns - earlier.interval.end_ns));
  };
  if (!for_each_match(then, then_label, after, after_label, verdict, visit)) return verdict;
  const std::int64_t latest_ns = within_ns - distances.closest_ns();
  return distances.verdict(latest_ns < 0
                               ? fmt::format("begins {} before it ends", time_text(-latest_ns))
                               : fmt::format("begins {} after it ended{}", time_text(latest_ns),
                                             then.size() > 1 ? " at most" : ""));
}

}  // namespace foretrace
