// What operations say of themselves: where answers meet each other, and where they are easily
// wrong.
#include "scenarios/program/op_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/program/program_walk.h"
#include "tests/scenarios/reading.h"

namespace foretrace::reading_test {
namespace {

using ::testing::ElementsAre;

OpKind kind_of(const std::string& op) { return read(scenario_with(op)).threads[0].ops[0].kind; }

TEST(OpFacts, OfACopyNameItsRangesAndItsStream) {
  const OpKind kind = kind_of("memcpy_async: {stream: s, src: host, dst: x, size: 4KiB}");
  const auto& copy = std::get<MemcpyAsync>(kind);
  const OpFacts facts = op_facts(kind);
  EXPECT_EQ(facts.stream, &copy.stream);
  EXPECT_EQ(facts.work, StreamWork::Copy);
  EXPECT_EQ(facts.waits, HostWaits::No);
  ASSERT_EQ(facts.accesses.size(), 2U);
  EXPECT_EQ(facts.accesses[0].buffer, &copy.src);
  EXPECT_FALSE(facts.accesses[0].writes);
  EXPECT_EQ(facts.accesses[0].offset, &copy.src_offset);
  EXPECT_TRUE(facts.accesses[1].writes);
  EXPECT_EQ(facts.accesses[1].size->eval({}), Bytes{4096});
}

TEST(OpFacts, OfAReductionWriteOneElement) {
  const OpFacts facts = op_facts(kind_of("reduction: {stream: s, src: x, dst: y, type: float64}"));
  ASSERT_EQ(facts.accesses.size(), 2U);
  EXPECT_EQ(facts.accesses[1].bytes, Bytes{8});
  EXPECT_EQ(facts.accesses[1].size, nullptr);
}

TEST(OpFacts, OfAProductReadWhatItAddsTo) {
  const std::string product = "gemm: {stream: s, m: 4, n: 4, k: 4, a: x, b: x, c: y";
  EXPECT_EQ(op_facts(kind_of(product + "}")).accesses.size(), 3U);
  const OpKind adds = kind_of(product + ", beta: 1}");
  const OpFacts facts = op_facts(adds);
  ASSERT_EQ(facts.accesses.size(), 4U);
  EXPECT_EQ(facts.accesses[3].buffer, &std::get<Gemm>(adds).c);
  EXPECT_FALSE(facts.accesses[3].writes);
}

TEST(OpFacts, TellAKernelsStreamFromOneThatIsOnlyWaitedFor) {
  const OpKind spin = kind_of("spin: {stream: s, duration: 1us}");
  const OpKind wait = kind_of("stream_synchronize: {stream: s}");
  EXPECT_NE(op_facts(spin).kernel_stream(), nullptr);
  EXPECT_NE(op_facts(wait).stream, nullptr);
  EXPECT_EQ(op_facts(wait).kernel_stream(), nullptr);
  EXPECT_EQ(op_facts(wait).waits, HostWaits::ForStream);
}

TEST(OpFacts, OfEventsSayWhoRecordsAndWhoWaits) {
  EXPECT_NE(op_facts(kind_of("event_record: {event: e, stream: s}")).event_recorded, nullptr);
  EXPECT_EQ(
      op_facts(kind_of("event_elapsed_time: {start: e2(0), end: e2(1)}")).events_waited_for.size(),
      2U);
}

TEST(KindFacts, AreKnownByName) {
  ASSERT_NE(kind_facts("nccl_all_to_all"), nullptr);
  EXPECT_EQ(kind_facts("nccl_all_to_all")->work, StreamWork::Nccl);
  EXPECT_TRUE(kind_facts("memcpy_async")->can_be_captured);
  EXPECT_FALSE(kind_facts("memcpy")->can_be_captured);
  EXPECT_TRUE(kind_facts("memcpy")->reports_errors);
  EXPECT_TRUE(kind_facts("host_wait")->can_be_grouped);
  EXPECT_FALSE(kind_facts("spin")->can_be_grouped);
  EXPECT_EQ(kind_facts("no_such_thing"), nullptr);
}

constexpr const char* kLoops =
    "repeat: {index: i, times: 2, ops: [repeat: {index: j, times: 3, ops: ["
    "region: {name: r, ops: [spin: {id: inner, stream: s, duration: 1us}]}, "
    "host_compute: {duration: 1us}]}]}";

TEST(ProgramWalk, KnowsTheBlocksAroundAnOperation) {
  const Program program = read(scenario_with(kLoops));
  std::vector<std::string> kinds;
  for_each_op(program, [&](const HostThread&, const Op& op, Around around) {
    if (op.label == "inner") {
      for (const Op* block : around) kinds.push_back(kind_name(block->kind));
      EXPECT_EQ(loops_of(around).size(), 2U);
      EXPECT_EQ(executions(around), 6U);
      EXPECT_TRUE(is_inside<Region>(around));
      EXPECT_FALSE(is_inside<NcclGroup>(around));
    }
  });
  EXPECT_THAT(kinds, ElementsAre("repeat", "repeat", "region"));
}

TEST(ProgramWalk, CountsWhatIsExecutedUpToOneLimit) {
  EXPECT_EQ(count_executions(read(scenario_with(kLoops)).threads[0].ops), 12U);
  EXPECT_EQ(times_capped(kMostExecutions, 3), kMostExecutions);
  EXPECT_EQ(times_capped(std::uint64_t{1} << 40, std::uint64_t{1} << 40), kMostExecutions);
  EXPECT_EQ(times_capped(kMostExecutions, 0), 0U);
}

TEST(ProgramWalk, RunsThroughExecutionsWithTheirLoopIndices) {
  const Program program = read(scenario_with(kLoops));
  std::vector<std::vector<std::int64_t>> seen;
  const auto all = [](const Block&) { return true; };
  ExecutionWalk{}.run(program.threads[0].ops, 7, all,
                      [&](const Op& op, Variables variables, Around) {
                        if (op.label == "inner")
                          seen.emplace_back(variables.begin(), variables.end());
                        return seen.size() < 4;
                      });
  EXPECT_THAT(seen, ElementsAre(ElementsAre(7, 0, 0), ElementsAre(7, 0, 1), ElementsAre(7, 0, 2),
                                ElementsAre(7, 1, 0)))
      << "stopped at the fourth";
}

TEST(ProgramWalk, LeavesOutBlocksThatNobodyWants) {
  const Program program = read(scenario_with(kLoops));
  int calls = 0;
  ExecutionWalk{}.run(
      program.threads[0].ops, 0, [](const Block&) { return false; },
      [&](const Op&, Variables, Around) { return ++calls > 0; });
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace foretrace::reading_test
