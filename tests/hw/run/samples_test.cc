#include "hw/run/samples.h"

#include <gmock/gmock.h>

#include "hw/trace/span_builder.h"
#include "tests/hw/programs.h"

namespace foretrace::hw {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

Program two_regions() {
  return program_of(R"(
threads:
  main:
    - region: {name: outer, ops: [{host_compute: {duration: 1us}}]}
    - repeat:
        times: 2
        ops:
          - region: {name: inner, per: 4, ops: [{host_compute: {duration: 1us}}]}
)");
}

/// OpId of the region of this name.
std::uint32_t region(const Program& program, const std::string& name) {
  for (const OpInfo& info : index_ops(program)) {
    const auto* found = std::get_if<Region>(&info.op->kind);
    if (found != nullptr && found->name == name) return info.op->id.value;
  }
  return 0;
}

TEST(RegionSamples, HaveOneRowPerInstanceAndProcess) {
  const Program program = two_regions();
  const std::uint32_t outer = region(program, "outer");
  const std::uint32_t inner = region(program, "inner");
  std::vector<RegionSamples> rows;
  add_repetition(rows, program, {{{outer, 0}, 10}, {{inner, 0}, 20}, {{inner, 1}, 30}}, 1, 0);
  add_repetition(rows, program, {{{outer, 0}, 11}, {{inner, 0}, 21}, {{inner, 1}, 31}}, 1, 0);
  ASSERT_THAT(rows, SizeIs(3));
  EXPECT_EQ(rows[0].name, "outer");
  EXPECT_EQ(rows[2].name, "inner");
  EXPECT_EQ(rows[2].instance, 1U);
  EXPECT_EQ(rows[2].process, 1U);
  EXPECT_EQ(rows[2].per, 4U);
  EXPECT_THAT(rows[2].samples_ns, ElementsAre(30, 31));
  EXPECT_EQ(repetitions_in(rows), 2U);
}

TEST(RegionSamples, OfAnotherStartJoinTheSameRow) {
  const Program program = two_regions();
  const std::uint32_t outer = region(program, "outer");
  std::vector<RegionSamples> rows;
  add_repetition(rows, program, {{{outer, 0}, 10}}, 0, 0);
  EXPECT_EQ(next_start(rows), 1U);
  std::vector<RegionSamples> more;
  add_repetition(more, program, {{{outer, 0}, 12}}, 0, 1);
  set_traced(more, program, {{{outer, 0}, 15}}, 0);
  append_samples(rows, more);
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_THAT(rows[0].samples_ns, ElementsAre(10, 12));
  EXPECT_THAT(rows[0].starts, ElementsAre(0U, 1U));
  EXPECT_EQ(rows[0].traced_ns, 15);
  EXPECT_EQ(next_start(rows), 2U);
}

TEST(RegionSamples, CountTheRowWithTheFewest) {
  EXPECT_EQ(repetitions_in({}), 0U);
  const Program program = two_regions();
  std::vector<RegionSamples> rows;
  add_repetition(rows, program, {{{region(program, "outer"), 0}, 10}}, 0, 0);
  add_repetition(rows, program, {{{region(program, "outer"), 0}, 10}}, 0, 0);
  add_repetition(rows, program, {{{region(program, "inner"), 0}, 10}}, 0, 0);
  EXPECT_EQ(repetitions_in(rows), 1U);
}

TEST(TimelinePart, SurvivesTheWayToRankZero) {
  Timeline part;
  part.lanes = {{LaneKind::HostThread, 0, 2, kNoDevice, "main"},
                {LaneKind::Stream, 0, 2, 1, "comm(1)"}};
  SpanDetail detail;
  detail.kernel = "spin_kernel";
  detail.algorithm = "Ring";
  detail.channels = 24;
  part.spans = {{4, 0, 7, 100, 250, 0, 0}, {4, 1, 7, 200, -5, 1, intern(part, detail)}};
  RegionSamples row;
  row.op = 3;
  row.name = "step";
  row.process = 2;
  row.samples_ns = {1, 2, 3};
  row.starts = {0, 0, 1};
  row.traced_ns = 9;
  part.regions = {row};

  const Timeline back = from_bytes(to_bytes(part));
  ASSERT_THAT(back.lanes, SizeIs(2));
  EXPECT_EQ(back.lanes[1].name, "comm(1)");
  EXPECT_EQ(back.lanes[1].device, 1U);
  EXPECT_EQ(back.lanes[0].device, kNoDevice);
  ASSERT_THAT(back.spans, SizeIs(2));
  EXPECT_EQ(back.spans[1].end_ns, -5);
  EXPECT_EQ(back.details[back.spans[1].detail], detail);
  ASSERT_THAT(back.regions, SizeIs(1));
  EXPECT_THAT(back.regions[0].samples_ns, ElementsAre(1, 2, 3));
  EXPECT_EQ(back.regions[0].traced_ns, 9);
}

TEST(TimelinePart, WithoutSpansSurvivesToo) {
  const Timeline back = from_bytes(to_bytes(Timeline{}));
  EXPECT_TRUE(back.spans.empty());
  EXPECT_THAT(back.details, SizeIs(1));
}

TEST(AddProcess, GivesLanesAndDetailsNewNumbers) {
  Timeline first;
  first.lanes = {{LaneKind::HostThread, 0, 0, kNoDevice, "main"}};
  SpanDetail spin;
  spin.kernel = "spin";
  first.spans = {{0, 0, 0, 1, 2, 1, intern(first, spin)}};
  Timeline second;
  second.lanes = {{LaneKind::HostThread, 0, 1, kNoDevice, "main"}};
  SpanDetail gemm;
  gemm.kernel = "gemm";
  second.spans = {{0, 0, 0, 3, 4, 1, intern(second, gemm)}};

  Timeline all;
  add_process(all, first);
  add_process(all, second);
  ASSERT_THAT(all.spans, SizeIs(2));
  EXPECT_EQ(all.lanes[all.spans[1].lane].process, 1U);
  EXPECT_EQ(all.details[all.spans[0].detail].kernel, "spin");
  EXPECT_EQ(all.details[all.spans[1].detail].kernel, "gemm");
}

}  // namespace
}  // namespace foretrace::hw
