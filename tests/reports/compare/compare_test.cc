#include "reports/compare/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "reports/compare/accuracy.h"
#include "reports/compare/output.h"
#include "reports/compare/words.h"
#include "scenarios/base/text/errors.h"
#include "tests/reports/timeline_builder.h"

namespace foretrace {
namespace {

using test::TimelineBuilder;
using testing::HasSubstr;

constexpr double kTenPercent = 0.10;

/// One region of one process, predicted to take `predicted_ns`.
struct OneRegion {
  TimelineBuilder predicted{false};
  TimelineBuilder measured{true};
  OneRegion(std::int64_t predicted_ns, std::vector<std::int64_t> measured_ns) {
    predicted.region(predicted.op("region", 4, "step"), "step", {predicted_ns});
    measured.region(measured.op("region", 4, "step"), "step", std::move(measured_ns));
  }
  RegionRow row() const {
    return compare_regions(predicted.timeline, measured.timeline, kTenPercent).at(0);
  }
};

TEST(CompareRegions, ErrorIsPredictedMinusMeasuredOverMeasured) {
  // (110 us - 100 us) / 100 us = +10 %; (80 - 100) / 100 = -20 %
  EXPECT_DOUBLE_EQ(OneRegion(110'000, {100'000}).row().error.value(), 0.10);
  EXPECT_DOUBLE_EQ(OneRegion(80'000, {100'000}).row().error.value(), -0.20);
}

TEST(CompareRegions, MeasuredFigureIsTheMedianOverRepetitionsOfTheSlowestProcess) {
  OneRegion one(100'000, {100'000, 300'000, 200'000});
  one.measured.region(0, "step", {150'000, 250'000, 400'000}, 1);
  one.measured.timeline.regions[0].starts = {0, 0, 1};
  const RegionRow row = one.row();
  // Slowest per repetition: 150, 300, 400 us. Median 300; p5 = 150 + 0.1 * 150 = 165;
  // p95 = 300 + 0.9 * 100 = 390.
  EXPECT_DOUBLE_EQ(row.second->median_ns, 300'000);
  EXPECT_DOUBLE_EQ(row.second->p5_ns, 165'000);
  EXPECT_DOUBLE_EQ(row.second->p95_ns, 390'000);
  EXPECT_EQ(row.second->samples, 3U);
  EXPECT_EQ(row.second->starts, 2U);
  ASSERT_EQ(row.processes.size(), 2U);
  EXPECT_DOUBLE_EQ(row.processes[0].second_ns.value(), 200'000);
  EXPECT_DOUBLE_EQ(row.processes[1].second_ns.value(), 250'000);
  EXPECT_FALSE(row.processes[1].first_ns.has_value());
}

TEST(CompareRegions, DividesByPer) {
  OneRegion one(40'000, {50'000});
  one.predicted.timeline.regions[0].per = 20;
  one.measured.timeline.regions[0].per = 20;
  EXPECT_DOUBLE_EQ(one.row().first->median_ns, 2'000);
  EXPECT_DOUBLE_EQ(one.row().second->median_ns, 2'500);
  EXPECT_EQ(title_words(one.row()), "step / 20");
}

TEST(CompareRegions, SaysHowMuchTracingChangedTheRegion) {
  OneRegion one(100'000, {90'000, 100'000, 110'000});
  one.measured.timeline.regions[0].traced_ns = 105'000;  // 105 / 100 - 1
  EXPECT_DOUBLE_EQ(one.row().tracing_change.value(), 0.05);
}

TEST(CompareRegions, ShowsTheBandOfThePrediction) {
  OneRegion one(100'000, {100'000});
  one.predicted.timeline.regions[0].low_factor = 0.75;
  one.predicted.timeline.regions[0].high_factor = 1.5;
  EXPECT_DOUBLE_EQ(one.row().low_ns.value(), 75'000);
  EXPECT_DOUBLE_EQ(one.row().high_ns.value(), 150'000);
}

TEST(CompareRegions, NamesTheLoopIndices) {
  OneRegion one(100, {100});
  for (Timeline* t : {&one.predicted.timeline, &one.measured.timeline}) {
    t->ops[0].loops = {3, 4};
    t->regions[0].instance = 7;  // 7 = 1 * 4 + 3
  }
  EXPECT_EQ(one.row().name, "step [1,3]");
}

TEST(CompareRegions, KeepsRegionsOfOneSideAsRows) {
  OneRegion one(100, {100});
  one.predicted.region(one.predicted.op("region", 9, "extra"), "extra", {5});
  one.measured.op("region", 9, "extra");
  const auto rows = compare_regions(one.predicted.timeline, one.measured.timeline, kTenPercent);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1].judgement, Judgement::Missing);
  EXPECT_FALSE(rows[1].error.has_value());
}

struct JudgementCase {
  const char* name;
  std::int64_t predicted_ns;
  std::vector<std::int64_t> measured_ns;
  Judgement expected;
};
class CompareRegionsJudges : public testing::TestWithParam<JudgementCase> {};

TEST_P(CompareRegionsJudges, AsTheRuleSays) {
  EXPECT_EQ(OneRegion(GetParam().predicted_ns, GetParam().measured_ns).row().judgement,
            GetParam().expected);
}

// Tolerance 10 % of the median; then p5..p95; then the larger of 1.5 us and half of p95 - p5.
INSTANTIATE_TEST_SUITE_P(
    Rule, CompareRegionsJudges,
    testing::Values(
        JudgementCase{"AtTheTolerance", 110'000, {100'000}, Judgement::WithinTolerance},
        JudgementCase{"BeyondTheTolerance", 110'001, {100'000}, Judgement::Outside},
        JudgementCase{"BelowTheTolerance", 89'999, {100'000}, Judgement::Outside},
        JudgementCase{"WithinTheNoiseFloor", 6'500, {5'000}, Judgement::WithinNoise},
        JudgementCase{"BeyondTheNoiseFloor", 6'501, {5'000}, Judgement::Outside},
        // sorted 80 100 100 100 200 (us): p5 = 84, p95 = 180, half the spread 48, median 100
        JudgementCase{"InsideTheSpread",
                      179'000,
                      {80'000, 100'000, 100'000, 100'000, 200'000},
                      Judgement::InsideSpread},
        JudgementCase{"WithinHalfTheSpread",
                      60'000,
                      {80'000, 100'000, 100'000, 100'000, 200'000},
                      Judgement::WithinNoise},
        JudgementCase{"BeyondHalfTheSpread",
                      51'000,
                      {80'000, 100'000, 100'000, 100'000, 200'000},
                      Judgement::Outside}),
    [](const auto& one) { return std::string{one.param.name}; });

/// A host call and its copy, twice in a loop.
TimelineBuilder two_copies(bool measured, std::int64_t duration_ns, std::int64_t zero_ns) {
  TimelineBuilder b{measured};
  const auto copy = b.op("memcpy_async", 12, "h2d", 1 << 20);
  b.timeline.ops[copy].loops = {2};
  const auto host = b.host();
  const auto stream = b.stream("copy");
  for (std::uint64_t i = 0; i < 2; ++i) {
    const auto begin = zero_ns + static_cast<std::int64_t>(i) * 100'000;
    b.span(copy, host, begin, begin + 4'000, 0, i);
    b.span(copy, stream, begin + 6'000, begin + 6'000 + duration_ns, 1, i);
  }
  return b;
}

TEST(CompareOperations, JoinsOnOperationInstanceProcessDeviceAndPart) {
  const auto predicted = two_copies(false, 44'000, 0);
  const auto measured = two_copies(true, 40'000, 0);
  const auto rows = compare_operations(predicted.timeline, measured.timeline);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].part, 0);
  EXPECT_EQ(rows[1].part, 1);
  EXPECT_EQ(rows[1].matched, 2U);
  EXPECT_EQ(rows[1].line, 12);
  EXPECT_EQ(rows[1].label, "h2d");
  EXPECT_DOUBLE_EQ(rows[1].first_ns.value(), 44'000);
  EXPECT_DOUBLE_EQ(rows[1].second_ns.value(), 40'000);
  EXPECT_DOUBLE_EQ(rows[1].error.value(), 0.10);
  EXPECT_DOUBLE_EQ(rows[1].total_difference_ns, 8'000);  // 2 * 4 us
}

TEST(CompareOperations, MeasuresBeginsFromTheRunsBegin) {
  const auto predicted = two_copies(false, 40'000, 0);
  auto measured = two_copies(true, 40'000, 7'000'000);  // its clock began elsewhere
  measured.timeline.spans[1].begin_ns += 3'000;
  measured.timeline.spans[3].begin_ns += 5'000;
  const auto rows = compare_operations(predicted.timeline, measured.timeline);
  EXPECT_DOUBLE_EQ(rows[0].begin_offset_ns.value(), 0);
  EXPECT_DOUBLE_EQ(rows[1].begin_offset_ns.value(), -4'000);  // median of -3 and -5 us
}

TEST(CompareOperations, KeepsSpansWithoutAPartner) {
  auto predicted = two_copies(false, 40'000, 0);
  auto measured = two_copies(true, 40'000, 0);
  predicted.timeline.ops[0].kind = measured.timeline.ops[0].kind = "graph_launch";
  predicted.span(0, 1, 500'000, 501'000, 2, 0);
  measured.timeline.spans.pop_back();
  const auto rows = compare_operations(predicted.timeline, measured.timeline);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[1].matched, 1U);
  EXPECT_EQ(rows[1].only_first, 1U);
  EXPECT_EQ(rows[2].part, 2);
  EXPECT_EQ(rows[2].only_first, 1U);
  EXPECT_DOUBLE_EQ(rows[2].first_ns.value(), 1'000);
  EXPECT_FALSE(rows[2].second_ns.has_value());
}

TEST(CompareOperations, TakesTheKernelsOfALibraryCallAsOneOperation) {
  TimelineBuilder predicted{false};
  TimelineBuilder measured{true};
  for (TimelineBuilder* side : {&predicted, &measured}) {
    side->op("gemm", 12, "product");
    side->stream("work");
  }
  predicted.span(0, 0, 10'000, 110'000, 1);
  measured.span(0, 0, 10'000, 11'000, 1);   // clears its workspace
  measured.span(0, 0, 12'000, 111'000, 2);  // 99 us
  const auto rows = compare_operations(predicted.timeline, measured.timeline);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].part, 1);
  EXPECT_EQ(rows[0].matched, 1U);
  EXPECT_EQ(rows[0].only_second, 0U);
  EXPECT_DOUBLE_EQ(rows[0].second_ns.value(), 100'000);  // 1 + 99
  EXPECT_DOUBLE_EQ(rows[0].error.value(), 0);
  EXPECT_EQ(rows[0].second_pieces, 2U);
}

TEST(CompareOperations, CountsTimeOfPiecesThatRunAtOnceOnce) {
  TimelineBuilder one{true};
  one.op("memcpy_async", 12, "staged");
  one.stream("work");
  one.span(0, 0, 0, 100, 1);
  one.span(0, 0, 50, 120, 2);
  one.span(0, 0, 60, 80, 3);
  EXPECT_DOUBLE_EQ(compare_operations(one.timeline, one.timeline).at(0).first_ns.value(), 120);
}

/// A copy and a kernel on two streams, the copy from `begin_ns` on.
TimelineBuilder copy_beside_kernel(bool measured, std::int64_t begin_ns) {
  TimelineBuilder b{measured};
  const auto kernel = b.op("spin", 3, "kernel");
  const auto copy = b.op("memcpy_async", 4, "copy");
  b.span(kernel, b.stream("work"), 0, 100'000, 1);
  b.span(copy, b.stream("copy"), begin_ns, begin_ns + 50'000, 1);
  return b;
}

TEST(CompareOverlaps, IsAShareOfTheShorterOperation) {
  const auto predicted = copy_beside_kernel(false, 20'000);
  const auto measured = copy_beside_kernel(true, 60'000);
  const auto rows = compare_overlaps(predicted.timeline, measured.timeline);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_DOUBLE_EQ(rows[0].first_share, 1);
  EXPECT_DOUBLE_EQ(rows[0].second_share, 0.8);  // 60 to 100 of 50 us
  EXPECT_FALSE(rows[0].differs) << "20 points apart";
}

TEST(CompareOverlaps, DifferWhereTheScheduleIsAnother) {
  const auto predicted = copy_beside_kernel(false, 20'000);
  const auto measured = copy_beside_kernel(true, 100'000);
  const auto comparison = compare(predicted.timeline, measured.timeline, kTenPercent);
  EXPECT_EQ(comparison.overlaps_that_differ(), 1U);
  EXPECT_FALSE(comparison.within());
}

TEST(Compare, RefusesTwoDifferentProgramsAndShowsBoth) {
  const TimelineBuilder a{false, "9b1c"};
  TimelineBuilder b{true, "77aa"};
  b.timeline.origin.scenario = "prefetch";
  try {
    compare(a.timeline, b.timeline, kTenPercent);
    FAIL() << "compared two different programs";
  } catch (const UsageError& e) {
    EXPECT_THAT(e.what(), HasSubstr("9b1c"));
    EXPECT_THAT(e.what(), HasSubstr("77aa"));
    EXPECT_THAT(e.what(), HasSubstr("'overlap'"));
    EXPECT_THAT(e.what(), HasSubstr("'prefetch'"));
  }
}

TEST(Compare, SaysFitOrPredictionByWhatDecidesARegion) {
  OneRegion one(100, {100});
  const auto standing = [&] {
    return compare(one.predicted.timeline, one.measured.timeline, kTenPercent).standing();
  };
  EXPECT_EQ(standing(), "prediction");
  one.predicted.timeline.regions[0].decided_by = {{"copy.h2d_bandwidth", -0.9}};
  EXPECT_EQ(standing(), "prediction") << "it decides the region and did not learn from it";
  one.predicted.timeline.regions[0].learned_by = {"copy.h2d_bandwidth"};
  EXPECT_EQ(standing(), "fit");
}

/// A region around one operation, predicted, and measured by `producer`.
Comparison around_one(const std::string& kind, const std::string& producer) {
  OneRegion one(100, {800});
  for (TimelineBuilder* side : {&one.predicted, &one.measured}) {
    side->op(kind, 6);
    side->timeline.ops[0].inside = 1;
  }
  one.measured.timeline.origin.producer = producer;
  return compare(one.predicted.timeline, one.measured.timeline, kTenPercent);
}

TEST(Compare, MarksRegionsOfWhichTheHarnessRanStandIns) {
  const Comparison harness = around_one("library_kernel", "foretrace-hw 0.1.0");
  EXPECT_EQ(harness.standing(harness.regions.at(0)), "stand-in");
  EXPECT_EQ(harness.standing(), "stand-in");
  EXPECT_THAT(compare_text(harness), HasSubstr("\n1 region of standing stand-in: library_kernel"));
  EXPECT_EQ(accuracy_of({&harness, 1}, Regions::Prediction).regions, 0u);
  EXPECT_EQ(around_one("framework_call", "foretrace-hw 0.1.0").standing(), "stand-in");
}

TEST(Compare, MarksRegionsWhoseCapturedKernelsWereStoodIn) {
  OneRegion one(100, {100});
  one.measured.timeline.origin.producer = "foretrace hw/pytorch 1";
  one.measured.timeline.origin.versions[kStandInCaptured] = "7 a pass: not the captured kernels";
  for (TimelineBuilder* side : {&one.predicted, &one.measured}) {
    side->timeline.ops.at(0).inside = 1;
    side->op("library_kernel", 2);
  }
  const Comparison c = compare(one.predicted.timeline, one.measured.timeline, kTenPercent);
  EXPECT_EQ(c.standing(), "stand-in");
  EXPECT_THAT(compare_text(c), HasSubstr("1 region of standing stand-in: 7 a pass: not the captured kernels."));
}

TEST(Compare, MarksNoRegionThatPyTorchRanOrThatHasNoLibraryKernel) {
  const Comparison pytorch = around_one("library_kernel", "foretrace hw/pytorch 1");
  EXPECT_EQ(pytorch.standing(), "prediction");
  EXPECT_EQ(around_one("gemm", "foretrace-hw 0.1.0").standing(), "prediction");
  EXPECT_EQ(compare_text(pytorch).find("stand-in"), std::string::npos);
}

TEST(Compare, IsNotWithinWhenARegionIsMissing) {
  OneRegion one(100, {100});
  EXPECT_TRUE(compare(one.predicted.timeline, one.measured.timeline, kTenPercent).within());
  one.measured.timeline.regions.clear();
  EXPECT_FALSE(compare(one.predicted.timeline, one.measured.timeline, kTenPercent).within());
}

TEST(Compare, IsNotWithinWhenTheRunsEndedDifferently) {
  OneRegion one(100, {100});
  one.measured.timeline.outcome.kind = Outcome::Kind::Timeout;
  EXPECT_FALSE(compare(one.predicted.timeline, one.measured.timeline, kTenPercent).within());
}

TEST(Compare, IsWithinWhenBothRunsHangHoweverTheyFoundOut) {
  OneRegion one(100, {100});
  one.predicted.timeline.outcome.kind = Outcome::Kind::Deadlock;
  one.measured.timeline.outcome.kind = Outcome::Kind::Timeout;
  one.measured.timeline.regions.clear();  // a run that hangs has no samples
  EXPECT_TRUE(compare(one.predicted.timeline, one.measured.timeline, kTenPercent).within());
  one.measured.timeline.outcome.kind = Outcome::Kind::Failed;
  EXPECT_FALSE(compare(one.predicted.timeline, one.measured.timeline, kTenPercent).within());
}

TEST(Accuracy, KeepsFitAndPredictionApart) {
  std::vector<Comparison> all;
  // Errors of predictions: +2 %, -4 %, +20 % (100 us: off by 20 us, beyond 15 %). Fit: +1 %.
  for (const std::int64_t ns : {102'000, 96'000, 120'000, 101'000}) {
    OneRegion one(ns, {100'000});
    if (ns == 101'000) one.predicted.timeline.regions[0].learned_by = {"copy.h2d_bandwidth"};
    all.push_back(compare(one.predicted.timeline, one.measured.timeline, kTenPercent));
  }
  const Accuracy predictions = accuracy_of(all, Regions::Prediction);
  EXPECT_EQ(predictions.regions, 3U);
  EXPECT_NEAR(predictions.median_abs_error, 0.04, 1e-12);
  // sorted 2 4 20: position 0.95 * 2 = 1.9 -> 4 + 0.9 * 16 = 18.4
  EXPECT_NEAR(predictions.p95_abs_error, 0.184, 1e-12);
  EXPECT_NEAR(predictions.worst_abs_error, 0.20, 1e-12);
  EXPECT_NEAR(predictions.share_within, 2.0 / 3, 1e-12);
  EXPECT_EQ(accuracy_of(all, Regions::Fit).regions, 1U);
  EXPECT_NEAR(accuracy_of(all, Regions::Fit).median_abs_error, 0.01, 1e-12);
}

TEST(Accuracy, AcceptsTheLargestOf15PercentOneAndAHalfMicrosecondsAndHalfTheSpread) {
  const auto share = [](std::int64_t predicted, std::vector<std::int64_t> measured) {
    const OneRegion one(predicted, std::move(measured));
    const std::vector<Comparison> all{
        compare(one.predicted.timeline, one.measured.timeline, kTenPercent)};
    return accuracy_of(all, Regions::Prediction).share_within;
  };
  EXPECT_EQ(share(115'000, {100'000}), 1);
  EXPECT_EQ(share(115'001, {100'000}), 0);
  EXPECT_EQ(share(2'500, {1'000}), 1);
  EXPECT_EQ(share(2'501, {1'000}), 0);
  // p5 = 84, p95 = 180 us, half of the spread 48 us around the median 100 us
  EXPECT_EQ(share(148'000, {80'000, 100'000, 100'000, 100'000, 200'000}), 1);
  EXPECT_EQ(share(148'001, {80'000, 100'000, 100'000, 100'000, 200'000}), 0);
}

}  // namespace
}  // namespace foretrace
