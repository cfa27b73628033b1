#include "tests/golden/repeats.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

namespace foretrace::test {
namespace {

constexpr std::size_t kLongestBody = 96;
constexpr std::int64_t kPs = 1000;  ///< in a nanosecond

struct Range {
  std::int64_t low = std::numeric_limits<std::int64_t>::min() / 4;
  std::int64_t high = std::numeric_limits<std::int64_t>::max() / 4;
  bool empty() const { return low > high; }
  void cut(std::int64_t from, std::int64_t to) {
    low = std::max(low, from);
    high = std::min(high, to);
  }
  /// The one with the fewest decimals as nanoseconds.
  std::int64_t roundest() const {
    for (const std::int64_t step : {kPs, kPs / 10, kPs / 100}) {
      const std::int64_t value = (low / step + (low % step > 0 ? 1 : 0)) * step;
      if (value <= high) return value;
    }
    return low;
  }
};

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }
std::int64_t divided_down(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

/// Bodies of one length at the beginning of `spans`.
class Candidate {
 public:
  Candidate(std::span<const RecordedSpan> spans, std::size_t length)
      : spans_{spans}, length_{length} {
    while (fits(times_)) ++times_;
  }

  std::size_t saved_lines() const { return times_ == 1 ? 0 : (times_ - 1) * length_ - header(); }

  /// With as many times as one period explains exactly.
  void settle() {
    std::size_t good = 1;
    std::size_t bad = times_ + 1;
    while (bad - good > 1) {
      const std::size_t middle = good + (bad - good) / 2;
      if (const auto period = find_period(middle)) {
        good = middle;
        period_ps_ = *period;
      } else {
        bad = middle;
      }
    }
    times_ = good;
  }

  Repeat repeat() const {
    Repeat repeat;
    repeat.times = times_;
    repeat.period_ps = times_ == 1 ? 0 : period_ps_;
    for (std::size_t j = 0; j < length_; ++j) {
      repeat.body.push_back({spans_[j].op, spans_[j].instance, spans_[j].part,
                             stride(&RecordedSpan::instance, j), stride(&RecordedSpan::part, j),
                             start(&RecordedSpan::begin_ns, j, times_, repeat.period_ps).roundest(),
                             start(&RecordedSpan::end_ns, j, times_, repeat.period_ps).roundest()});
    }
    return repeat;
  }

 private:
  using Number = std::uint64_t RecordedSpan::*;
  using Time = std::int64_t RecordedSpan::*;

  std::size_t header() const { return length_ > 1 ? 1 : 0; }
  std::uint64_t stride(Number number, std::size_t j) const {
    return times_ == 1 ? 0 : spans_[length_ + j].*number - spans_[j].*number;
  }

  /// Whether the k-th time has the same operations and may be as far away as those before; narrows
  /// the period.
  bool fits(std::size_t k) {
    if ((k + 1) * length_ > spans_.size()) return false;
    Range period = period_;
    const auto times = static_cast<std::int64_t>(k);
    for (std::size_t j = 0; j < length_; ++j) {
      const RecordedSpan& first = spans_[j];
      const RecordedSpan& now = spans_[k * length_ + j];
      const RecordedSpan& second = spans_[length_ + j];
      if (now.op != first.op) return false;
      for (const Number number : {&RecordedSpan::instance, &RecordedSpan::part}) {
        if (second.*number < first.*number) return false;
        if (now.*number != first.*number + k * (second.*number - first.*number)) return false;
      }
      for (const Time time : {&RecordedSpan::begin_ns, &RecordedSpan::end_ns}) {
        const std::int64_t distance = (now.*time - first.*time) * kPs;
        period.cut(divided_up(distance - kPs + 1, times), divided_down(distance + kPs - 1, times));
      }
    }
    if (period.empty()) return false;
    period_ = period;
    narrowed_.push_back(period);
    return true;
  }

  /// Where line j may start, in picoseconds, when `times` of them are `period_ps` apart.
  Range start(Time time, std::size_t j, std::size_t times, std::int64_t period_ps) const {
    Range range;
    for (std::size_t k = 0; k < times; ++k) {
      const std::int64_t at =
          spans_[k * length_ + j].*time * kPs - static_cast<std::int64_t>(k) * period_ps;
      range.cut(at, at + kPs - 1);
      if (range.empty()) break;
    }
    return range;
  }

  bool explains(std::size_t times, std::int64_t period_ps) const {
    for (std::size_t j = 0; j < length_; ++j) {
      if (start(&RecordedSpan::begin_ns, j, times, period_ps).empty()) return false;
      if (start(&RecordedSpan::end_ns, j, times, period_ps).empty()) return false;
    }
    return true;
  }

  std::optional<std::int64_t> find_period(std::size_t times) const {
    const Range range = narrowed_.at(times - 2);
    for (const std::int64_t step : {kPs, kPs / 10, kPs / 100, std::int64_t{1}}) {
      for (std::int64_t p = divided_up(range.low, step) * step; p <= range.high; p += step) {
        if (explains(times, p)) return p;
      }
    }
    return std::nullopt;
  }

  std::span<const RecordedSpan> spans_;
  std::size_t length_;
  std::size_t times_ = 1;
  Range period_;
  std::vector<Range> narrowed_;  ///< the period's, of 2, 3, ... times
  std::int64_t period_ps_{};
};

Repeat best_at(std::span<const RecordedSpan> spans) {
  Candidate best{spans.first(1), 1};
  for (std::size_t length = 1; length <= kLongestBody && 2 * length <= spans.size(); ++length) {
    Candidate candidate{spans, length};
    if (candidate.saved_lines() <= best.saved_lines()) continue;
    candidate.settle();
    if (candidate.saved_lines() > best.saved_lines()) best = candidate;
  }
  return best.repeat();
}

}  // namespace

std::vector<Repeat> find_repeats(std::span<const RecordedSpan> spans) {
  std::vector<Repeat> repeats;
  while (!spans.empty()) {
    repeats.push_back(best_at(spans));
    spans = spans.subspan(repeats.back().body.size() * repeats.back().times);
  }
  return repeats;
}

void expand(const Repeat& repeat, std::vector<RecordedSpan>& spans) {
  for (std::uint64_t k = 0; k < repeat.times; ++k) {
    const std::int64_t later_ps = static_cast<std::int64_t>(k) * repeat.period_ps;
    for (const Repeat::Line& line : repeat.body) {
      spans.push_back(
          {line.op, line.instance + k * line.instance_stride, line.part + k * line.part_stride,
           divided_down(line.begin_ps + later_ps, kPs), divided_down(line.end_ps + later_ps, kPs)});
    }
  }
}

}  // namespace foretrace::test
