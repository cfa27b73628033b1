#include "scenarios/program/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/reading.h"

namespace foretrace {
namespace {

using reading_test::read;
using reading_test::scenario_with;
using ::testing::ElementsAre;

TEST(IndexOps, ListsTheLoopsAroundEachOperation) {
  const Program program = read(
      scenario_with("repeat: {times: 2, ops: [{region: {name: r, ops: [{repeat: {times: 3, ops: "
                    "[{device_synchronize: {}}]}}]}}]}\ndevice_synchronize: {}"));
  const auto index = index_ops(program);
  ASSERT_EQ(index.size(), 5U);
  EXPECT_TRUE(std::holds_alternative<DeviceSynchronize>(index[3].op->kind));
  EXPECT_THAT(index[3].loops, ElementsAre(OpId{0}, OpId{2}));
  EXPECT_TRUE(index[0].loops.empty());
  EXPECT_TRUE(index[4].loops.empty());
}

TEST(IndexOps, KnowsTheThread) {
  const Program program = read(
      "schema_version: 1\nname: a\nthreads:\n"
      "  one: [{device_synchronize: {}}]\n"
      "  two: [{device_synchronize: {}}]\n");
  const auto index = index_ops(program);
  ASSERT_EQ(index.size(), 2U);
  EXPECT_EQ(index[0].thread, 0U);
  EXPECT_EQ(index[1].thread, 1U);
}

TEST(LoopIndices, ReadTheInstanceAsAMixedRadixNumber) {
  EXPECT_THAT(loop_indices(0, {}), ElementsAre());
  EXPECT_THAT(loop_indices(5, {10}), ElementsAre(5));
  // 2 * 12 + 1 * 4 + 3 = 31 for loops of 5, 3 and 4 iterations.
  EXPECT_THAT(loop_indices(31, {5, 3, 4}), ElementsAre(2, 1, 3));
}

std::string hash_of(const std::string& text) { return read(text).hash; }

TEST(ProgramHash, DoesNotDependOnNamesLinesOrComments) {
  const std::string a =
      "# One.\nschema_version: 1\nname: one\nstreams: {s: {}}\nthreads:\n"
      "  main: [{region: {name: r, ops: [{spin: {id: x, stream: s, duration: 1us}}]}}]\n";
  const std::string b =
      "# Two.\n\nschema_version: 1\nname: two\nparameters: {t: 0.5us}\nstreams: {other: {}}\n\n"
      "threads:\n  work:\n    - region: {name: q, ops: [{spin: {duration: 2 * $t, stream: "
      "other}}]}\n";
  EXPECT_EQ(hash_of(a), hash_of(b));
}

TEST(ProgramHash, DependsOnEverythingThatIsRun) {
  const auto with = [](const std::string& head, const std::string& op) {
    return hash_of("schema_version: 1\nname: a\n" + head + "\nthreads: {main: [" + op + "]}\n");
  };
  const std::string spin = "{spin: {duration: 1us}}";
  const std::string base = with("", spin);
  EXPECT_NE(base, with("processes: 2", spin));
  EXPECT_NE(base, with("devices: 2", spin));
  EXPECT_NE(base, with("warmup: 0", spin));
  EXPECT_NE(base, with("environment: {NCCL_ALGO: Ring}", spin));
  EXPECT_NE(base, with("streams: {s: {}}", spin));
  EXPECT_NE(base, with("buffers: {x: {memory: device, size: 1KiB}}", spin));
  EXPECT_NE(base, with("", "{spin: {duration: 2us}}"));
  EXPECT_NE(base, with("", "{spin: {duration: 1us, blocks: 2}}"));
  EXPECT_NE(base, with("", "{spin: {duration: 1us, stream: per_thread}}"));
  EXPECT_NE(base, with("", spin + ", " + spin));
  EXPECT_NE(base, with("", "{repeat: {times: 1, ops: [" + spin + "]}}"));
}

TEST(ProgramHash, IsTheSameForPrioritiesThatCudaClampsAlike) {
  const auto with = [](const std::string& priority) {
    return hash_of("schema_version: 1\nname: a\nstreams: {s: {priority: " + priority +
                   "}}\nthreads: {main: []}\n");
  };
  EXPECT_EQ(with("-7"), with("-9"));
  EXPECT_EQ(with("-7"), with("-5"));
  EXPECT_EQ(with("3"), with("0"));
  EXPECT_NE(with("-5"), with("-4"));
}

TEST(ProgramHash, DependsOnHowAProductReadsItsMatrices) {
  const auto with = [](const std::string& more) {
    return canonical_text(
        read("schema_version: 1\nname: a\nbuffers: {x: {memory: device, size: 1KiB, count: 2}}\n"
             "threads: {main: [{gemm: {m: 4, n: 4, k: 4, a: x(0), b: x(0), c: x(1)" +
             more + "}}]}\n"));
  };
  const std::string plain = with("");
  EXPECT_THAT(plain, testing::HasSubstr("gemm #0+0 4 4 4 t2 #0+0 #0+0 #0+1\n")) << plain;
  EXPECT_EQ(plain, with(", transpose_a: false, batch: 1, beta: 0"));
  for (const char* more : {", transpose_a: true", ", transpose_b: true", ", batch: 2", ", beta: 1"})
    EXPECT_NE(plain, with(more)) << more;
}

TEST(ProgramHash, IsAFixedDigestOfTheCanonicalText) {
  const Program program = read(
      "schema_version: 1\nname: a\nthreads: {main: [{spin: {duration: 1us, "
      "blocks: 3}}]}\n");
  EXPECT_EQ(canonical_text(program),
            "foretrace program 1\nnodes 1 processes 1 devices 1 warmup 1\n"
            "stream 0 0 0\nstream 0 1 0\nsignals 0 barriers 0\n"
            "thread 0\n{\nspin #0+0 1000000ps 3\n}\n");
  EXPECT_EQ(program.hash.size(), 36U);
}

TEST(KindName, IsTheScenariosWord) {
  EXPECT_EQ(kind_name(MemcpyAsync{}), "memcpy_async");
  NcclCollective collective{};
  collective.kind = CollectiveKind::ReduceScatter;
  EXPECT_EQ(kind_name(collective), "nccl_reduce_scatter");
}

TEST(SizeOf, KnowsEveryType) {
  EXPECT_EQ(size_of(DataType::BFloat16).count, 2U);
  EXPECT_EQ(size_of(DataType::Float64).count, 8U);
  EXPECT_EQ(size_of(DataType::Int8).count, 1U);
}

}  // namespace
}  // namespace foretrace
