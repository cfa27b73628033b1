#include "reports/judge/expectations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/reports/timeline_builder.h"

namespace foretrace {
namespace {

using namespace literals;
using test::TimelineBuilder;
using testing::HasSubstr;

/// Two labelled operations on two streams of each of two processes.
struct TwoStreams : TimelineBuilder {
  std::uint32_t a = op("memcpy_async", 3, "a");
  std::uint32_t b = op("gemm", 4, "b");
  std::uint32_t host_lane = host();
  std::uint32_t copy = stream("copy");
  std::uint32_t compute = stream("compute");
  std::uint32_t other_copy = stream("copy", 1);
  std::uint32_t other_compute = stream("compute", 1);
  TwoStreams() : TimelineBuilder{true} {}
};

Expectation overlap(double at_least, std::string first = "a", std::string second = "b") {
  Expectation e;
  e.kind = "overlap";
  e.spans = {std::move(first), std::move(second)};
  e.fraction = at_least;
  return e;
}
Expectation order() {
  Expectation e;
  e.kind = "order";
  e.spans = {"a", "b"};
  return e;
}

TEST(ExpectOverlap, IsTheShareOfTheFirstLabelsDeviceTime) {
  TwoStreams t;
  t.span(t.a, t.copy, 0, 100, 1, 0);
  t.span(t.a, t.copy, 200, 300, 1, 1);
  t.span(t.b, t.compute, 50, 90, 1, 0);    // 40 of a's first span
  t.span(t.b, t.compute, 280, 500, 1, 1);  // 20 of a's second: 60 of 200
  EXPECT_EQ(judge(overlap(0.30), t.timeline).held, Held::Yes);
  EXPECT_EQ(judge(overlap(0.31), t.timeline).held, Held::No);
  EXPECT_THAT(judge(overlap(0.31), t.timeline).found, HasSubstr("30.0 %"));
}

TEST(ExpectOverlap, CountsTimeUnderTwoOtherSpansOnce) {
  TwoStreams t;
  t.span(t.a, t.copy, 0, 100, 1, 0);
  t.span(t.b, t.compute, 0, 50, 1, 0);
  t.span(t.b, t.compute, 20, 50, 1, 1);
  EXPECT_EQ(judge(overlap(0.51), t.timeline).held, Held::No);
  EXPECT_EQ(judge(overlap(0.50), t.timeline).held, Held::Yes);
}

TEST(ExpectOverlap, LooksAtTheSameProcessWhereTheOtherLabelRuns) {
  TwoStreams t;
  t.span(t.a, t.copy, 0, 100, 1);
  t.span(t.b, t.compute, 200, 300, 1);
  t.span(t.b, t.other_compute, 0, 100, 1);  // another process: does not count
  EXPECT_EQ(judge(overlap(0.01), t.timeline).held, Held::No);
}

TEST(ExpectOverlap, CrossesProcessesWhenTheOtherLabelRunsElsewhereOnly) {
  TwoStreams t;
  t.span(t.a, t.copy, 0, 100, 1);
  t.span(t.b, t.other_compute, 0, 100, 1);
  EXPECT_EQ(judge(overlap(1.0), t.timeline).held, Held::Yes);
}

TEST(ExpectOverlap, OfALabelWithItselfNeedsTwoSpansAtOnce) {
  TwoStreams t;
  t.span(t.a, t.copy, 0, 100, 1, 0);
  t.span(t.a, t.compute, 50, 150, 1, 1);  // both run from 50 to 100: 100 of 200
  EXPECT_EQ(judge(overlap(0.50, "a", "a"), t.timeline).held, Held::Yes);
  EXPECT_EQ(judge(overlap(0.51, "a", "a"), t.timeline).held, Held::No);
}

TEST(ExpectOverlap, IgnoresHostCalls) {
  TwoStreams t;
  t.span(t.a, t.host_lane, 0, 100, 0);
  t.span(t.b, t.compute, 0, 100, 1);
  const Verdict verdict = judge(overlap(0.1), t.timeline);
  EXPECT_EQ(verdict.held, Held::No);
  EXPECT_EQ(verdict.found, "no device span of 'a'");
}

TEST(ExpectOrder, HoldsWhenTheSecondBeginsAsTheFirstEnds) {
  TwoStreams t;
  t.span(t.a, t.copy, 0, 100, 1, 0);
  t.span(t.b, t.compute, 100, 200, 1, 0);
  EXPECT_EQ(judge(order(), t.timeline).held, Held::Yes);
}

TEST(ExpectOrder, IsBrokenByOneInstance) {
  TwoStreams t;
  for (std::uint64_t i = 0; i < 3; ++i) {
    const auto at = static_cast<std::int64_t>(i) * 1000;
    t.span(t.a, t.copy, at, at + 100, 1, i);
    t.span(t.b, t.compute, at + (i == 1 ? 90 : 110), at + 200, 1, i);
  }
  const Verdict verdict = judge(order(), t.timeline);
  EXPECT_EQ(verdict.held, Held::No);
  EXPECT_EQ(verdict.found, "1 of 3 begin too early, by up to 10 ns");
}

TEST(ExpectOrder, ComparesHostCallsWhereAnOperationHasNoDeviceSpan) {
  TwoStreams t;
  t.span(t.a, t.host_lane, 0, 100, 0);
  t.span(t.b, t.compute, 50, 200, 1);
  EXPECT_EQ(judge(order(), t.timeline).held, Held::No);
}

TEST(ExpectOrder, IsNotJudgedWithinTheClocksErrorBoundAcrossProcesses) {
  TwoStreams t;
  t.timeline.origin.clock_error_bound_ns = 800;
  t.span(t.a, t.copy, 0, 1000, 1);
  const auto b = t.span(t.b, t.other_compute, 300, 5000, 1);  // 700 ns too early, or not
  EXPECT_EQ(judge(order(), t.timeline).held, Held::Undecided);
  t.timeline.spans[b].begin_ns = 199;  // 801 ns too early: certain
  EXPECT_EQ(judge(order(), t.timeline).held, Held::No);
  t.timeline.spans[b].begin_ns = 1801;
  EXPECT_EQ(judge(order(), t.timeline).held, Held::Yes);
}

TEST(ExpectOrder, IsJudgedToTheNanosecondOnOneDevice) {
  TwoStreams t;
  t.timeline.origin.clock_error_bound_ns = 800;
  t.span(t.a, t.copy, 0, 1000, 1);
  t.span(t.b, t.compute, 999, 5000, 1);
  EXPECT_EQ(judge(order(), t.timeline).held, Held::No);
}

TEST(ExpectOrder, HoldsEveryInstanceToASingleFirst) {
  TwoStreams t;
  t.span(t.a, t.copy, 0, 100, 1, 0);
  t.span(t.b, t.compute, 150, 200, 1, 4);
  EXPECT_EQ(judge(order(), t.timeline).held, Held::Yes);
  t.span(t.b, t.compute, 50, 60, 1, 5);
  EXPECT_EQ(judge(order(), t.timeline).held, Held::No);
}

TEST(ExpectOrder, IsBrokenWhenNothingMatches) {
  TwoStreams t;
  t.span(t.a, t.copy, 0, 100, 1, 0);
  EXPECT_EQ(judge(order(), t.timeline).found, "no span of 'b'");
}

TEST(ExpectHostFree, JudgesTheLongestCall) {
  TwoStreams t;
  t.span(t.a, t.host_lane, 0, 4'000, 0, 0);
  t.span(t.a, t.host_lane, 10'000, 15'000, 0, 1);
  t.span(t.a, t.copy, 0, 900'000, 1, 0);  // the device may take long
  Expectation e;
  e.kind = "host_free";
  e.spans = {"a"};
  e.at_most = 5_us;
  EXPECT_EQ(judge(e, t.timeline).held, Held::Yes);
  e.at_most = Duration{4'999'999};  // 1 ps too few
  EXPECT_EQ(judge(e, t.timeline).held, Held::No);
}

/// Two labels and a time.
Expectation expectation(std::string kind, std::vector<std::string> spans) {
  Expectation e;
  e.kind = std::move(kind);
  e.spans = std::move(spans);
  return e;
}

TEST(ExpectReturnsBefore, ComparesTheCallsEndWithTheDevicesEnd) {
  TwoStreams t;
  t.span(t.a, t.host_lane, 0, 500, 0);
  t.span(t.a, t.copy, 300, 400, 1);  // its own device span does not matter
  const auto b = t.span(t.b, t.compute, 100, 600, 1);
  const Expectation before = expectation("returns_before", {"a", "b"});
  const Expectation after = expectation("returns_after", {"a", "b"});
  EXPECT_EQ(judge(before, t.timeline).held, Held::Yes);
  EXPECT_EQ(judge(before, t.timeline).found, "returns 100 ns before it ends");
  EXPECT_EQ(judge(after, t.timeline).held, Held::No);
  EXPECT_EQ(judge(after, t.timeline).found, "1 of 1 return before it ends, by up to 100 ns");
  t.timeline.spans[b].end_ns = 450;
  EXPECT_EQ(judge(before, t.timeline).held, Held::No);
  EXPECT_EQ(judge(after, t.timeline).held, Held::Yes);
}

TEST(ExpectReturnsBefore, IsUndecidedWithinTheClocksErrorBound) {
  TwoStreams t;
  t.timeline.origin.clock_error_bound_ns = 800;
  t.span(t.a, t.host_lane, 0, 1000, 0);
  const auto b = t.span(t.b, t.compute, 100, 1800, 1);
  const Expectation before = expectation("returns_before", {"a", "b"});
  EXPECT_EQ(judge(before, t.timeline).held, Held::Undecided);
  t.timeline.spans[b].end_ns = 1801;
  EXPECT_EQ(judge(before, t.timeline).held, Held::Yes);
  t.timeline.spans[b].end_ns = 199;
  EXPECT_EQ(judge(before, t.timeline).held, Held::No);
}

TEST(ExpectReturnsBefore, HoldsEveryCallToItsOwnInstance) {
  TwoStreams t;
  for (std::uint64_t i = 0; i < 2; ++i) {
    const auto at = static_cast<std::int64_t>(i) * 1000;
    t.span(t.a, t.host_lane, at, at + 50, 0, i);
    t.span(t.b, t.compute, at, at + 100, 1, i);
  }
  EXPECT_EQ(judge(expectation("returns_before", {"a", "b"}), t.timeline).held, Held::Yes);
  t.span(t.a, t.host_lane, 2000, 2050, 0, 2);
  EXPECT_EQ(judge(expectation("returns_before", {"a", "b"}), t.timeline).found,
            "no instance of 'b' matches every one of 'a'");
}

TEST(ExpectReturnsBefore, NeedsACallAndADeviceSpan) {
  TwoStreams t;
  t.span(t.a, t.copy, 0, 100, 1);
  EXPECT_EQ(judge(expectation("returns_before", {"a", "b"}), t.timeline).found,
            "no host call of 'a'");
  t.span(t.a, t.host_lane, 0, 100, 0);
  t.span(t.b, t.host_lane, 0, 100, 0);
  EXPECT_EQ(judge(expectation("returns_after", {"a", "b"}), t.timeline).found,
            "no device span of 'b'");
}

TEST(ExpectBeginsWithin, AllowsAnEarlierBegin) {
  TwoStreams t;
  t.span(t.a, t.copy, 0, 1000, 1);
  const auto b = t.span(t.b, t.compute, 3000, 5000, 1);
  Expectation e = expectation("begins_within", {"a", "b"});
  e.at_most = 2_us;
  t.timeline.origin.clock_error_bound_ns = 500;  // of one device: does not matter
  EXPECT_EQ(judge(e, t.timeline).held, Held::Yes);
  EXPECT_EQ(judge(e, t.timeline).found, "begins 2.000 us after it ended");
  t.timeline.spans[b].begin_ns = 3001;
  EXPECT_EQ(judge(e, t.timeline).held, Held::No);
  t.timeline.spans[b].begin_ns = 400;
  EXPECT_EQ(judge(e, t.timeline).held, Held::Yes);
  EXPECT_EQ(judge(e, t.timeline).found, "begins 600 ns before it ends");
}

TEST(ExpectHostBlocked, JudgesTheShortestCall) {
  TwoStreams t;
  t.span(t.a, t.host_lane, 0, 4'000, 0, 0);
  t.span(t.a, t.host_lane, 10'000, 15'000, 0, 1);
  Expectation e = expectation("host_blocked", {"a"});
  e.at_least = 4_us;
  EXPECT_EQ(judge(e, t.timeline).held, Held::Yes);
  EXPECT_EQ(judge(e, t.timeline).found, "4.000 us at least, of 2");
  e.at_least = 5_us;
  EXPECT_EQ(judge(e, t.timeline).held, Held::No);
}

TEST(ExpectLasts, JudgesEveryDeviceSpan) {
  TwoStreams t;
  t.span(t.a, t.host_lane, 0, 90'000, 0);
  t.span(t.a, t.copy, 0, 4'000, 1, 0);
  t.span(t.a, t.copy, 5'000, 11'000, 1, 1);
  Expectation e = expectation("lasts", {"a"});
  e.at_least = 4_us;
  e.at_most = 6_us;
  EXPECT_EQ(judge(e, t.timeline).held, Held::Yes);
  EXPECT_EQ(judge(e, t.timeline).found, "4.000 us .. 6.000 us, of 2");
  e.at_most = 5_us;
  EXPECT_EQ(judge(e, t.timeline).held, Held::No);
}

TEST(ExpectFails, NeedsAFailureAtTheLine) {
  TwoStreams t;  // label a is in line 3, b in line 4
  const Expectation at_a = expectation("fails", {"a"});
  EXPECT_EQ(judge(at_a, t.timeline).found, "completed");
  t.timeline.outcome = {Outcome::Kind::Failed, {"process 0, thread main, x.yaml:3: memcpy_async"}};
  EXPECT_EQ(judge(at_a, t.timeline).held, Held::Yes);
  EXPECT_EQ(judge(at_a, t.timeline).found, "failed at line 3");
  EXPECT_EQ(judge(expectation("fails", {"b"}), t.timeline).held, Held::No);
  EXPECT_EQ(judge(expectation("hangs", {"a"}), t.timeline).held, Held::No);
}

TEST(ExpectHangs, MeansADeadlockOrATimeout) {
  TwoStreams t;
  const Expectation at_b = expectation("hangs", {"b"});
  for (const Outcome::Kind kind : {Outcome::Kind::Deadlock, Outcome::Kind::Timeout}) {
    t.timeline.outcome = {kind, {"process 1, thread main, x.yaml:4: gemm waits for ever"}};
    EXPECT_EQ(judge(at_b, t.timeline).held, Held::Yes);
  }
  t.timeline.outcome.explanation = {"x.yaml:44: elsewhere"};
  EXPECT_EQ(judge(at_b, t.timeline).held, Held::No);
}

TEST(Describe, ReadsAsASentence) {
  Expectation e = expectation("begins_within", {"a", "b"});
  e.at_most = 20_us;
  EXPECT_EQ(describe(e), "b begins at most 20.00 us after a ended");
  EXPECT_EQ(describe(expectation("returns_before", {"a", "b"})), "a returns before b ends");
  EXPECT_EQ(describe(expectation("returns_after", {"a", "b"})), "a returns after b ended");
  EXPECT_EQ(describe(expectation("hangs", {"a"})), "hangs at a");
  EXPECT_EQ(describe(expectation("fails", {"a"})), "fails at a");
}

TEST(ExpectTotal, JudgesTheReportedMedian) {
  TimelineBuilder t{true};
  t.region(t.op("region", 5, "step"), "step", {90'000, 100'000, 500'000}).per = 10;
  Expectation e;
  e.kind = "total";
  e.spans = {"step"};
  e.at_least = 10_us;  // the median of three, divided by per
  e.at_most = 10_us;
  EXPECT_EQ(judge(e, t.timeline).held, Held::Yes);
  e.at_most = Duration{9'999'000};
  EXPECT_EQ(judge(e, t.timeline).held, Held::No);
}

TEST(ExpectRatio, DividesTheFirstRegionByTheSecond) {
  TimelineBuilder t{true};
  t.region(t.op("region", 5, "one"), "one", {40'000});
  t.region(t.op("region", 9, "four"), "four", {10'000});
  Expectation e;
  e.kind = "ratio";
  e.spans = {"one", "four"};
  e.fraction = 3.9;
  e.fraction_at_most = 4.1;
  EXPECT_EQ(judge(e, t.timeline).held, Held::Yes);
  EXPECT_THAT(judge(e, t.timeline).found, HasSubstr("4 = 40.00 us / 10.00 us"));
  e.spans = {"four", "one"};
  EXPECT_EQ(judge(e, t.timeline).held, Held::No);
  e.spans = {"four", "gone"};
  EXPECT_EQ(judge(e, t.timeline).found, "no region 'gone'");
}

TEST(ExpectRatio, SumsARegionInsideALoop) {
  TimelineBuilder t{true};
  const auto one = t.op("region", 5, "one");
  t.timeline.ops[one].loops = {2};
  t.region(one, "one", {10'000}, 0, 0);
  t.region(one, "one", {30'000}, 0, 1);
  t.region(t.op("region", 9, "four"), "four", {20'000});
  Expectation e;
  e.kind = "ratio";
  e.spans = {"one", "four"};
  e.fraction = 2.0;
  e.fraction_at_most = 2.0;
  EXPECT_EQ(judge(e, t.timeline).held, Held::Yes);
}

TEST(ExpectChannels, AreThoseOfEveryKernelOfTheLabel) {
  TimelineBuilder t{true};
  t.span(t.op("nccl_all_reduce", 3, "ar"), t.stream("comm"), 0, 10, 1);
  SpanDetail detail;
  detail.channels = 24;
  t.timeline.details.push_back(detail);
  t.timeline.spans[0].detail = 1;
  Expectation e;
  e.kind = "channels";
  e.spans = {"ar"};
  e.fraction = 24;
  EXPECT_EQ(judge(e, t.timeline).held, Held::Yes);
  EXPECT_EQ(describe(e), "NCCL runs ar on at least 24 channels");
  e.fraction = 1;
  e.fraction_at_most = 23;
  EXPECT_EQ(judge(e, t.timeline).held, Held::No);
}

TEST(ExpectOnAMachine, IsJudgedThereOnly) {
  TwoStreams t;
  t.span(t.b, t.compute, 0, 100, 1, 0);
  t.span(t.a, t.copy, 50, 60, 1, 0);
  t.timeline.origin.machine = "no-copy-engine";
  Expectation e = order();  // a begins after b: broken
  EXPECT_EQ(judge(e, t.timeline).held, Held::No);
  e.on = {"one-copy-engine"};
  EXPECT_EQ(judge(e, t.timeline).held, Held::Elsewhere);
  EXPECT_EQ(describe(e), "a before b, on one-copy-engine");
  e.on = {"one-copy-engine", "no-copy-engine"};
  EXPECT_EQ(judge(e, t.timeline).held, Held::No);
  e = order();
  e.not_on = {"no-copy-engine"};
  EXPECT_EQ(judge(e, t.timeline).held, Held::Elsewhere);
}

}  // namespace
}  // namespace foretrace
