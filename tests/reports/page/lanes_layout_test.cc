#include "reports/page/lanes_layout.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/reports/timeline_builder.h"

namespace foretrace {
namespace {

using test::TimelineBuilder;

/// `count` kernels of 10 ns, every 20 ns.
TimelineBuilder many_kernels(bool measured, int count) {
  TimelineBuilder b{measured};
  const auto op = b.op("gemm", 3);
  const auto host = b.host();
  const auto stream = b.stream("compute");
  for (int i = 0; i < count; ++i) {
    b.span(op, host, i * 20, i * 20 + 5, 0, static_cast<std::uint64_t>(i));
    b.span(op, stream, i * 20 + 5, i * 20 + 15, 1, static_cast<std::uint64_t>(i));
  }
  return b;
}

LanesLayout lay_out_both(const Timeline& predicted, const Timeline& measured,
                         const LayoutLimits& limits = {}) {
  const std::vector<Side> sides{{&predicted, "predicted"}, {&measured, "measured"}};
  return lay_out(sides, limits);
}

TEST(LanesLayout, PutsTheTwoTimelinesOfALaneTogetherPredictedFirst) {
  const auto predicted = many_kernels(false, 2);
  const auto measured = many_kernels(true, 2);
  const LanesLayout layout = lay_out_both(predicted.timeline, measured.timeline);
  ASSERT_EQ(layout.lanes.size(), 2U);
  EXPECT_EQ(layout.lanes[0].lane.name, "main");
  EXPECT_EQ(layout.lanes[1].lane.name, "compute");
  ASSERT_EQ(layout.lanes[1].rows.size(), 2U);
  EXPECT_EQ(layout.lanes[1].rows[0].side, 0U);
  EXPECT_EQ(layout.lanes[1].rows[1].side, 1U);
  EXPECT_EQ(layout.lanes[1].rows[1].boxes.size(), 2U);
}

TEST(LanesLayout, BeginsBothTimelinesAtZero) {
  const auto predicted = many_kernels(false, 1);
  auto measured = many_kernels(true, 1);
  for (Span& span : measured.timeline.spans) {
    span.begin_ns += 1'000'000;
    span.end_ns += 1'000'000;
  }
  const LanesLayout layout = lay_out_both(predicted.timeline, measured.timeline);
  EXPECT_EQ(layout.lanes[0].rows[1].boxes[0].begin_ns, 0);
  EXPECT_EQ(layout.lanes[1].rows[1].boxes[0].begin_ns, 5);
  EXPECT_EQ(layout.end_ns, 15);
}

TEST(LanesLayout, ShowsRequestsFromFirstToLastAndTheEngineWhereThereAreTooMany) {
  TimelineBuilder b{false};
  const auto waits = b.op("request_waits", 3);
  const auto iteration = b.op("decode_iteration", 3);
  for (int i = 0; i < 100; ++i) {
    Lane lane;
    lane.kind = LaneKind::Request;
    lane.name = "request " + std::to_string(100 + i);
    b.timeline.lanes.push_back(lane);
    b.span(waits, static_cast<std::uint32_t>(i), i, i + 5);
  }
  b.span(iteration, b.stream("iterations"), 0, 50, 1);
  const std::vector<Side> sides{{&b.timeline, "predicted"}};
  const LanesLayout layout = lay_out(sides, {.lanes = 11});
  ASSERT_EQ(layout.lanes.size(), 11U);
  EXPECT_EQ(layout.hidden_lanes, 90U);
  EXPECT_EQ(layout.lanes[0].lane.name, "request 100");
  EXPECT_EQ(layout.lanes[9].lane.name, "request 190");
  EXPECT_EQ(layout.lanes[9].rows[0].boxes[0].span_class, SpanClass::Waiting);
  EXPECT_EQ(layout.lanes[10].lane.name, "iterations");
  EXPECT_EQ(layout.lanes[10].rows[0].boxes[0].span_class, SpanClass::Decode);
}

TEST(LanesLayout, DrawsEverySpanAndArrowWhileThereAreFew) {
  const auto b = many_kernels(true, 1000);
  const LanesLayout layout = lay_out_both(b.timeline, b.timeline);
  EXPECT_EQ(layout.spans, 4000U);
  EXPECT_EQ(layout.merged_spans, 0U);
  EXPECT_EQ(layout.lanes[1].rows[0].boxes.size(), 1000U);
  EXPECT_EQ(layout.arrows.size(), 2000U);
  EXPECT_EQ(layout.hidden_arrows, 0U);
}

TEST(LanesLayout, MergesNarrowNeighboursOfManyAndCountsThem) {
  const auto b = many_kernels(true, 10'000);  // narrow: below 0.0005 * 200 us = 100 ns
  const LanesLayout layout = lay_out_both(b.timeline, b.timeline);
  EXPECT_EQ(layout.merged_spans, 40'000U);
  EXPECT_EQ(layout.hidden_arrows, 20'000U);
  const auto& boxes = layout.lanes[1].rows[0].boxes;
  EXPECT_LT(boxes.size(), 500U);
  const auto spans = std::accumulate(boxes.begin(), boxes.end(), 0U,
                                     [](auto sum, const Box& box) { return sum + box.count; });
  EXPECT_EQ(spans, 10'000U);
  EXPECT_EQ(boxes[0].busy_ns, 10 * boxes[0].count);
}

TEST(LanesLayout, KeepsWideSpansAmongMany) {
  auto b = many_kernels(true, 10'000);
  b.span(0, 1, 300'000, 320'000, 1, 20'000);  // 20 us of 320
  const LanesLayout layout = lay_out_both(b.timeline, b.timeline);
  EXPECT_EQ(layout.lanes[1].rows[0].boxes.back().count, 1U);
  EXPECT_EQ(layout.lanes[1].rows[0].boxes.back().end_ns, 320'000);
}

TEST(LanesLayout, HasNoMoreBoxesForManyLanesThanForOne) {
  TimelineBuilder b{true};
  const auto op = b.op("gemm", 3);
  for (int lane = 0; lane < 60; ++lane) {
    const auto stream = b.stream("s" + std::to_string(lane));
    for (int i = 0; i < 500; ++i) {  // as wide as what is drawn alone
      b.span(op, stream, i * 20, i * 20 + 15, 1, static_cast<std::uint64_t>(i));
    }
  }
  const std::vector<Side> sides{{&b.timeline, "measured"}};
  const LanesLayout layout = lay_out(sides, LayoutLimits{});
  std::size_t boxes = 0;
  for (const LaneRows& lane : layout.lanes) boxes += lane.rows[0].boxes.size();
  EXPECT_LE(boxes, LayoutLimits{}.spans);
  EXPECT_GT(boxes, LayoutLimits{}.spans / 20);
  EXPECT_EQ(layout.merged_spans, 30'000U);
}

TEST(LanesLayout, ShowsThePartThatWasAskedFor) {
  const auto b = many_kernels(true, 100);  // 2 us
  const LanesLayout layout = lay_out_both(
      b.timeline, b.timeline, {.spans = 1000, .lanes = 8, .narrow = 0.0005, .until_ns = 199});
  EXPECT_EQ(layout.end_ns, 199);
  EXPECT_EQ(layout.run_end_ns, 99 * 20 + 15);
  EXPECT_EQ(layout.lanes[1].rows[0].boxes.size(), 10U);  // begin at 5, 25, ... 185
}

TEST(LanesLayout, LeavesOutLanesWithoutSpansAndCountsThoseBeyondTheLimit) {
  auto b = many_kernels(true, 1);
  b.stream("default(0)");  // nothing ran there
  EXPECT_EQ(lay_out_both(b.timeline, b.timeline).lanes.size(), 2U);
  const LanesLayout layout = lay_out_both(
      b.timeline, b.timeline, {.spans = 100, .lanes = 1, .narrow = 0.0005, .until_ns = 0});
  EXPECT_EQ(layout.lanes.size(), 1U);
  EXPECT_EQ(layout.hidden_lanes, 1U);
}

}  // namespace
}  // namespace foretrace
