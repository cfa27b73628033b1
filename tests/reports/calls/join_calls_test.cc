// A measured step of a user's script, joined call by call with the prediction of its capture.
#include "reports/calls/join_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/compare/compare.h"
#include "reports/compare/output.h"
#include "reports/timeline/origin.h"
#include "scenarios/captured/kernel_name.h"
#include "scenarios/base/text/errors.h"
#include "tests/reports/timeline_builder.h"

namespace foretrace {
namespace {

using test::TimelineBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kJoined = 0.10;
constexpr const char* kMul = "void at::native::mul_kernel<float>(int)";
constexpr const char* kAdd = "void at::native::add_kernel<float>(int)";

/// Two turns of two steps: mul, add, mm, a copy of 8 bytes; each kernel 10 us in the step that a
/// comparison takes, which is the first one of the last turn, and 90 us in the others.
TimelineBuilder predicted_run() {
  TimelineBuilder b{false};
  const auto region = b.op("region", 2, "step");
  b.timeline.ops[region].loops = {2};
  const auto host = b.host(), stream = b.stream("default(0)");
  const auto op = [&](const char* kind, const char* label, std::string variant) {
    const auto id = b.op(kind, 3, label);
    b.timeline.ops[id].variant = std::move(variant);
    b.timeline.ops[id].loops = {2, 2};
    return id;
  };
  const std::vector<std::uint32_t> ops{op("library_kernel", "mul", captured::kernel_word(kMul)),
                                       op("library_kernel", "add", captured::kernel_word(kAdd)),
                                       op("gemm", "mm", "bfloat16"),
                                       op("memcpy_async", "copy_", "d2h pinned")};
  b.timeline.ops[ops[3]].size_bytes = 8;
  b.timeline.ops[region].inside = 4;
  for (std::uint64_t instance = 0; instance < 4; ++instance) {
    std::int64_t at = 1'000'000 * static_cast<std::int64_t>(instance);
    for (const auto one : ops) {
      b.span(one, host, at, at + 2'000, 0, instance);
      b.span(one, stream, at + 5'000, at + (instance == 2 ? 15'000 : 95'000), 1, instance);
      at += 100'000;
    }
  }
  for (std::uint64_t turn = 0; turn < 2; ++turn)
    b.region(region, "step", {800'000}, 0, turn).per = 2;
  return b;
}

struct MeasuredRun {
  TimelineBuilder b{true, kMeasuredStepHash};
  std::uint32_t host = b.host(), stream = b.stream("stream 7");
  std::int64_t at = 0;

  MeasuredRun() { b.region(b.op("region", 0, "step"), "step", {820'000, 780'000}).per = 2; }
  void kernel(const std::string& operation, const std::string& name, std::int64_t us,
              int parts = 1) {
    const auto id = b.op("library_kernel", 0, name);
    b.timeline.ops[id].captured = true;
    b.timeline.ops[id].variant = "aten::" + operation;
    b.timeline.ops[id].loops = {1};
    b.span(id, host, at, at + 1'000);
    for (int part = 1; part <= parts; ++part) {
      const auto span =
          b.span(id, stream, at + 2'000, at + 2'000 + us * 1'000, static_cast<std::uint32_t>(part));
      b.timeline.spans[span].detail = static_cast<std::uint32_t>(b.timeline.details.size());
      b.timeline.details.push_back(SpanDetail{.kernel = name});
      at += 50'000;
    }
  }
};

std::vector<std::string> names_of(const std::vector<FamilyRow>& rows) {
  std::vector<std::string> names;
  for (const FamilyRow& row : rows) names.push_back(row.family);
  std::ranges::sort(names);
  return names;
}

const FamilyRow& row_of(const Comparison& c, const std::string& family) {
  for (const FamilyRow& row : c.families) {
    if (row.family == family) return row;
  }
  throw UsageError{"no row " + family};
}

TEST(JoinCalls, PairsKernelsByNameAndALibrarysByTheOperationThatCalledIt) {
  MeasuredRun measured;
  measured.kernel("mm", "nvjet_tst_128x64", 20, 2);  // a product of two kernels
  measured.kernel("mul", kMul, 8);
  measured.kernel("add", kAdd, 12);
  measured.kernel("add", kAdd, 12);  // one more than was captured
  const auto c = compare(predicted_run().timeline, measured.b.timeline, kJoined);
  EXPECT_THAT(names_of(c.families), ElementsAre("add", "copy d2h", "mm", "mul"));
  EXPECT_DOUBLE_EQ(row_of(c, "mul").error.value(), 0.25);
  EXPECT_EQ(row_of(c, "mm").joined, 1U);
  EXPECT_DOUBLE_EQ(row_of(c, "mm").second_ns, 40'000) << "both kernels of the product";
  EXPECT_EQ(row_of(c, "add").joined, 1U);
  EXPECT_THAT(row_of(c, "add").only_second, ElementsAre("add_kernel"));
  EXPECT_THAT(row_of(c, "copy d2h").only_first, ElementsAre("copy_"));
  ASSERT_EQ(c.regions.size(), 1U) << "the last turn alone";
  EXPECT_DOUBLE_EQ(c.regions[0].error.value(), 0.0);
  EXPECT_EQ(c.regions[0].judgement, Judgement::WithinTolerance);
}

TEST(JoinCalls, TakesTheFirstStepOfTheLastTurnFromItsBeginOn) {
  MeasuredRun measured;
  measured.kernel("mul", kMul, 10);
  const JoinedStep joined = join_calls(predicted_run().timeline, measured.b.timeline);
  ASSERT_EQ(joined.predicted.spans.size(), 8U);
  EXPECT_EQ(joined.predicted.spans[0].begin_ns, 0);
  EXPECT_EQ(joined.predicted.spans[1].end_ns, 15'000);
  EXPECT_EQ(joined.measured.spans[0].op, joined.predicted.spans[0].op);
  EXPECT_EQ(joined.measured.spans[0].instance, joined.predicted.spans[0].instance);
}

TEST(JoinCalls, TextNamesWhatIsOnOneSideOnly) {
  MeasuredRun measured;
  measured.kernel("relu", "void at::native::relu_kernel<float>(int)", 3);
  const std::string text =
      compare_text(compare(predicted_run().timeline, measured.b.timeline, kJoined));
  EXPECT_THAT(text, HasSubstr("only measured: relu: relu_kernel"));
  EXPECT_THAT(text, HasSubstr("only predicted:"));
  EXPECT_THAT(text, HasSubstr("| all operations |"));
}

TEST(JoinCalls, RefusesAPredictionWithoutTheRegion) {
  MeasuredRun measured;
  TimelineBuilder other{false};
  other.region(other.op("region", 1, "epoch"), "epoch", {1});
  try {
    compare(other.timeline, measured.b.timeline, kJoined);
    FAIL() << "was compared";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no region of that name"));
    EXPECT_THAT(error.what(), HasSubstr("--region"));
  }
}

}  // namespace
}  // namespace foretrace
