// Words of CUDA, NCCL, PyTorch and MPI, and what a scenario calls them.
#include "scenarios/base/text/synonyms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/reading.h"

namespace foretrace {
namespace {

using reading_test::problems_of;
using reading_test::scenario_with;
using ::testing::HasSubstr;

TEST(Synonyms, AreOfferedWhereTheWordMayStand) {
  EXPECT_EQ(meant_by("rank", {"process", "processes", "ops"}), "did you mean 'process'?");
  EXPECT_EQ(meant_by("rank", {"comm", "buffer", "peer"}), "did you mean 'peer'?");
  EXPECT_EQ(meant_by("rank", {"duration", "blocks"}), "");
  EXPECT_EQ(meant_by("sendbuff", {"buffer", "send_buffer"}), "did you mean 'send_buffer'?");
  EXPECT_EQ(meant_by("sendbuff", {"buffer", "peer"}), "did you mean 'buffer'?");
}

TEST(Synonyms, SayWhatIsElseToKnow) {
  EXPECT_EQ(meant_by("count", {"stream", "size", "type"}),
            "did you mean 'size'? in bytes, with a unit: 4KiB, or $n * 4B");
  EXPECT_EQ(meant_by("kind", {"src", "dst", "size"}),
            "the kind of a copy follows from its buffers");
}

TEST(Synonyms, AreFoundBehindTheNamesOfLibraries) {
  const std::vector<std::string> all{"memcpy_async", "all_reduce", "nccl_all_reduce",  "host_alloc",
                                     "gemm",         "nccl_group", "stream_wait_event"};
  EXPECT_EQ(meant_by("cudaMemcpyAsync", all), "did you mean 'memcpy_async'?");
  EXPECT_EQ(meant_by("cudaStreamWaitEvent", all), "did you mean 'stream_wait_event'?");
  EXPECT_EQ(meant_by("cudaMallocHost", all), "did you mean 'host_alloc'?");
  EXPECT_EQ(meant_by("ncclAllReduce", all), "did you mean 'nccl_all_reduce'?");
  EXPECT_EQ(meant_by("dist.all_reduce", all), "did you mean 'all_reduce'?");
  EXPECT_EQ(meant_by("MPI_Allreduce", all), "did you mean 'all_reduce'?");
  EXPECT_EQ(meant_by("ncclGroupStart", all), "did you mean 'nccl_group'?");
  EXPECT_EQ(meant_by("torch.matmul", all), "did you mean 'gemm'?");
  EXPECT_EQ(meant_by("ncclFloat16", {"float32", "float16"}), "did you mean 'float16'?");
  EXPECT_EQ(meant_by("ncclSum", {"sum", "max"}), "did you mean 'sum'?");
  EXPECT_EQ(meant_by("torch.float", {"float32", "float16"}), "did you mean 'float32'?");
}

TEST(Synonyms, StandInTheHintsOfAScenario) {
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\nprocesses: 2\n"
                        "threads: {main: {rank: 0, ops: []}}\n"),
            "4:18 error: unknown key 'rank' in a thread | did you mean 'process'?\n");
  EXPECT_THAT(problems_of("schema_version: 1\nname: a\nnranks: 2\nthreads: {main: []}\n"),
              HasSubstr("unknown key 'nranks' in a scenario | did you mean 'processes'?"));
  EXPECT_THAT(problems_of(scenario_with("cudaMemcpyAsync: {src: host, dst: x}")),
              HasSubstr("unknown operation 'cudaMemcpyAsync' | did you mean 'memcpy_async'?"));
  EXPECT_THAT(problems_of(scenario_with("memset: {dst: x, count: 4}")),
              HasSubstr("unknown key 'count' in memset | did you mean 'size'? in bytes"));
  EXPECT_THAT(problems_of(scenario_with("elementwise: {dst: x, dtype: float32}")),
              HasSubstr("unknown key 'dtype' in elementwise | did you mean 'type'?"));
  EXPECT_THAT(problems_of(scenario_with("elementwise: {dst: x, type: half}")),
              HasSubstr("unknown type 'half' | did you mean 'float16'?"));
  EXPECT_THAT(problems_of(scenario_with("spin: {device: 1, duration: 1us}")),
              HasSubstr("unknown key 'device' in spin | an operation runs on the device of its"));
  EXPECT_THAT(problems_of(scenario_with("when: {condition: rank == 0, ops: []}")),
              HasSubstr("unknown name 'rank' | did you mean 'process'?"));
}

}  // namespace
}  // namespace foretrace
