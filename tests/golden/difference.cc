#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <tuple>

#include "tests/golden/recorded.h"

namespace foretrace::test {
namespace {

constexpr double kRate = 1e-6;

bool same(std::int64_t expected, std::int64_t got, double slack_ns) {
  const auto magnitude = std::abs(static_cast<double>(expected));
  return std::abs(static_cast<double>(got - expected)) <= slack_ns + kRate * magnitude;
}

/// The first difference in words, and how many there are.
class Differences {
 public:
  void add(const std::string& where, const std::string& expected, const std::string& got) {
    if (count_++ == 0) {
      first_ = fmt::format("{}:\n  expected {}\n  got      {}\n", where, expected, got);
    }
  }
  std::string text() const {
    return count_ == 0 ? "" : fmt::format("{}{} such differences in all\n", first_, count_);
  }

 private:
  std::string first_;
  std::size_t count_ = 0;
};

std::string text(const RecordedSpan& span) {
  const std::string part = span.part == 1 ? "" : fmt::format(" part {}", span.part);
  return fmt::format("{}[{}]{}: {} {}", span.op, span.instance, part, span.begin_ns, span.end_ns);
}

/// Spans are joined by operation, instance and part: two that begin at once may come in either
/// order.
class LaneDifference {
 public:
  LaneDifference(const std::string& lane, const Recorded::Spans& got, Differences& differences)
      : lane_{lane}, differences_{&differences} {
    for (const RecordedSpan& span : got) got_[key_of(span)] = &span;
  }

  void expect(const RecordedSpan& span) {
    const std::string where = fmt::format("lane {}, span {}", lane_, ++number_);
    const auto found = got_.find(key_of(span));
    if (found == got_.end()) return differences_->add(where, text(span), "no such span");
    const RecordedSpan& now = *found->second;
    got_.erase(found);
    const bool begins = follows(span.begin_ns, now.begin_ns);
    const bool ends = follows(span.end_ns, now.end_ns);
    if (!begins || !ends) differences_->add(where, text(span), text(now));
  }

  void end() {
    for (const auto& [key, span] : got_) {
      differences_->add(fmt::format("lane {}", lane_), "no such span", text(*span));
    }
  }

 private:
  using Key = std::tuple<std::string, std::uint64_t, std::uint64_t>;
  static Key key_of(const RecordedSpan& span) { return {span.op, span.instance, span.part}; }

  /// As far from the run's start, and from the lane's time before it.
  bool follows(std::int64_t expected, std::int64_t got) {
    const bool good = same(expected, got, 1) && same(expected - expected_, got - got_ns_, 2);
    expected_ = expected;
    got_ns_ = got;
    return good;
  }

  std::string lane_;
  Differences* differences_;
  std::map<Key, const RecordedSpan*> got_;
  std::size_t number_ = 0;
  std::int64_t expected_ = 0;  ///< the time before, in both
  std::int64_t got_ns_ = 0;
};

template <typename Values, typename Compare>
void compare_keys(const Values& expected, const Values& got, Differences& differences,
                  const Compare& compare) {
  for (const auto& [key, value] : expected) {
    const auto found = got.find(key);
    if (found == got.end()) {
      differences.add(key, "predicted", "not predicted");
    } else {
      compare(key, value, found->second);
    }
  }
  for (const auto& [key, value] : got) {
    if (!expected.contains(key)) differences.add(key, "not predicted", "predicted");
  }
}

std::string text(const std::vector<Recorded::Band>& bands) {
  std::string text;
  for (const auto& [low, high] : bands) text += fmt::format("{:.5g} to {:.5g}  ", low, high);
  return text;
}

bool same_bands(const std::vector<Recorded::Band>& a, const std::vector<Recorded::Band>& b) {
  const auto near = [](double x, double y) { return std::abs(x - y) <= 1e-4 * std::abs(x); };
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!near(a[i].first, b[i].first) || !near(a[i].second, b[i].second)) return false;
  }
  return true;
}

}  // namespace

std::string difference(const Recorded& expected, const Recorded& got) {
  Differences differences;
  if (expected.outcome != got.outcome) differences.add("outcome", expected.outcome, got.outcome);
  compare_keys(expected.lanes, got.lanes, differences,
               [&](const std::string& name, const auto& spans, const auto& now) {
                 LaneDifference lane{name, now, differences};
                 for (const RecordedSpan& span : spans) lane.expect(span);
                 lane.end();
               });
  compare_keys(expected.region_ns, got.region_ns, differences,
               [&](const std::string& name, std::int64_t ns, std::int64_t now) {
                 if (same(ns, now, 1)) return;
                 differences.add(name, fmt::format("{} ns", ns), fmt::format("{} ns", now));
               });
  compare_keys(expected.bands, got.bands, differences,
               [&](const std::string& name, const auto& bands, const auto& now) {
                 if (same_bands(bands, now)) return;
                 differences.add("band " + name, text(bands), text(now));
               });
  return differences.text();
}

}  // namespace foretrace::test
