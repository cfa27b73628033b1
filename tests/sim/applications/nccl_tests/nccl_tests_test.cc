// nccl-tests' arithmetic and loop, and the files of real results that are compared with it.
#include <gtest/gtest.h>

#include <cmath>

#include "scenarios/read/scenario.h"
#include "scenarios/base/text/errors.h"
#include "sim/applications/nccl_tests/log.h"
#include "sim/applications/nccl_tests/op.h"
#include "sim/applications/nccl_tests/output.h"
#include "sim/applications/nccl_tests/predict.h"

namespace foretrace::test {
namespace {

using enum NcclTestsOp;

const NcclTestsType kFloat = parse_nccl_tests_type("float");

TEST(NcclTestsSizes, AreWholeElementsOfOneVector) {
  EXPECT_EQ(nccl_tests_size(AllReduce, 1023, kFloat, 8), (NcclTestsSize{1020, 255}));
  EXPECT_EQ(nccl_tests_size(SendRecv, 8, kFloat, 8), (NcclTestsSize{8, 2}));
}

TEST(NcclTestsSizes, OfPartsAreMultiplesOfSixteenBytesPerRank) {
  // 1000 B = 250 elements; 250 / 8 = 31, rounded down to 28 = 112 B; 8 * 112 B = 896 B
  for (const NcclTestsOp op : {AllGather, ReduceScatter, AllToAll, Gather, Scatter}) {
    EXPECT_EQ(nccl_tests_size(op, 1000, kFloat, 8), (NcclTestsSize{896, 28}));
    EXPECT_EQ(nccl_tests_size(op, 64, kFloat, 8).count, 0u) << "less than 16 B for each rank";
  }
  EXPECT_EQ(nccl_tests_size(AllGather, 128, parse_nccl_tests_type("double"), 8).count, 2u);
}

TEST(NcclTestsSizes, DoubleOrStepUpToTheLastOne) {
  using Sizes = std::vector<std::uint64_t>;
  EXPECT_EQ(sizes_in({8, 64, 1, 2}), (Sizes{8, 16, 32, 64}));
  EXPECT_EQ(sizes_in({8, 60, 1, 2}), (Sizes{8, 16, 32}));
  EXPECT_EQ(sizes_in({8, 32, 10, 0}), (Sizes{8, 18, 28}));
  EXPECT_EQ(sizes_in({1ull << 62, ~0ull, 1, 2}).size(), 2u) << "2^64 is no size";
}

TEST(NcclTestsSizes, AreWrittenWithBinaryUnits) {
  EXPECT_EQ(parse_nccl_tests_size("4G", "-e"), 4ull << 30);
  EXPECT_EQ(parse_nccl_tests_size("1.5k", "-e"), 1536u);
  EXPECT_EQ(parse_nccl_tests_size("64MiB", "-e"), 64u << 20);
  for (const char* wrong : {"", "-1", "4x", "G", "1e40"}) {
    EXPECT_THROW(parse_nccl_tests_size(wrong, "-e"), UsageError) << wrong;
  }
}

TEST(NcclTestsBandwidth, IsBytesOverTimeAndTheBusFactor) {
  // 1 GiB in 5252.6 us: 1073741824 B / 5252.6e-6 s = 204.42 GB/s; times 14/8 = 357.74
  const double algbw = algorithm_gbps(1ull << 30, 5252.6);
  EXPECT_NEAR(algbw, 204.42, 0.005);
  EXPECT_NEAR(algbw * bus_factor(AllReduce, 8), 357.74, 0.01);
  EXPECT_EQ(bus_factor(AllReduce, 2), 1);
  for (const NcclTestsOp op : {AllGather, ReduceScatter, AllToAll, Gather, Scatter}) {
    EXPECT_EQ(bus_factor(op, 4), 0.75);
  }
  for (const NcclTestsOp op : {Broadcast, Reduce, SendRecv}) EXPECT_EQ(bus_factor(op, 4), 1);
}

TEST(NcclTestsOps, GoByTheProgramsNamesToo) {
  for (const char* name : {"alltoall", "alltoall_perf", "all_to_all"}) {
    EXPECT_EQ(parse_nccl_tests_op(name), AllToAll);
  }
  EXPECT_THROW(parse_nccl_tests_op("all_redcue"), UsageError);
}

NcclTestsPlan plan(NcclTestsOp op, std::uint32_t processes, std::uint32_t gpus) {
  NcclTestsPlan plan;
  plan.op = op;
  plan.processes = processes;
  plan.gpus = gpus;
  plan.sizes = {{4096, 1024}, {1 << 20, 1 << 18}};
  return plan;
}

TEST(NcclTestsScenario, IsOneThatTheLanguageReadsForEveryOperationAndLayout) {
  for (const NcclTestsOp op : {AllReduce, AllGather, ReduceScatter, Broadcast, Reduce, AllToAll,
                               SendRecv, Gather, Scatter}) {
    for (const std::uint32_t gpus : {1u, 4u}) {
      for (const std::uint32_t threads : {1u, 2u}) {
        for (const std::uint32_t launches : {0u, 3u}) {
          NcclTestsPlan tested = plan(op, 2, gpus);
          tested.threads = threads;
          tested.graph_launches = launches;
          tested.sizes = {{1 << 20, (1u << 20) / 4 / tested.ranks()}};
          const std::string text = nccl_tests_scenario(tested, {{20, launches}});
          const auto read = read_scenario(text, "nccl-tests.yaml");
          ASSERT_TRUE(read.has_value()) << render(read.error(), text);
          EXPECT_EQ(read->program.processes * read->program.devices, tested.ranks());
        }
      }
    }
  }
}

TEST(NcclTestsLoops, BeyondTwentyIterationsGrowSteadily) {
  NcclTestsPlan tested = plan(AllReduce, 2, 1);
  EXPECT_EQ(simulated_loops(tested).size(), 1u) << "20 are simulated as they are";
  tested.iterations = 1000;
  tested.graph_launches = 50;
  const auto loops = simulated_loops(tested);
  // 7 once, 3 for each launch, 2 for each iteration
  const auto time = [](double iterations, double launches) {
    return 7 + launches * (3 + 2 * iterations);
  };
  std::vector<double> times;
  for (const NcclTestsLoop& loop : loops) times.push_back(time(loop.iterations, loop.launches));
  EXPECT_DOUBLE_EQ(whole_time(tested, loops, times), time(1000, 50));
}

// Each simulation has a process of its own: see sim/README.md.

TEST(NcclTestsPrediction, OfOneThreadWithEightGpusPaysForEightLaunches) {
  const auto rows = predict_nccl_tests({plan(AllReduce, 8, 1), plan(AllReduce, 1, 8)},
                                       load_machine("h200-nvswitch-8"));
  const NcclTestsRow& processes = rows[0][0];
  const NcclTestsRow& thread = rows[1][0];
  EXPECT_GT(thread.time_us, processes.time_us) << "4 KiB: bound by the host thread";
  EXPECT_EQ(thread.algorithm, processes.algorithm);
  EXPECT_EQ(thread.protocol, processes.protocol);
  EXPECT_EQ(thread.channels, processes.channels);
  EXPECT_GT(processes.channels, 0u);
  EXPECT_LE(processes.low_us, processes.time_us);
  EXPECT_GE(processes.high_us, processes.time_us);
}

TEST(NcclTestsPrediction, OfGraphsIsNearlyTheSameForOneThreadAndForProcesses) {
  const NcclTestsPlan processes = plan(SendRecv, 4, 1), thread = plan(SendRecv, 1, 4);
  NcclTestsPlan graphs = processes, graphs_of_thread = thread;
  graphs.graph_launches = graphs_of_thread.graph_launches = 10;
  const auto rows = predict_nccl_tests({processes, thread, graphs, graphs_of_thread},
                                       load_machine("h200-nvswitch-8"));
  const double launched = rows[1][0].time_us / rows[0][0].time_us;
  const double as_graphs = rows[3][0].time_us / rows[2][0].time_us;
  EXPECT_LT(std::abs(as_graphs - 1), std::abs(launched - 1))
      << "4 KiB: the host launches once, the GPUs do the rest";
}

TEST(NcclTestsPrediction, OfManyIterationsIsThatOfTheWholeLoop) {
  NcclTestsPlan twenty = plan(AllReduce, 2, 1), many = twenty;
  many.iterations = 2000;
  const auto rows = predict_nccl_tests({twenty, many}, load_machine("h200-nvswitch-8"));
  EXPECT_LT(rows[1][1].time_us, rows[0][1].time_us) << "what comes once weighs less";
  EXPECT_GT(rows[1][1].time_us, 0.5 * rows[0][1].time_us) << "and is not the most of it";
}

TEST(NcclTestsCsv, HasItsColumnsAndARowForEachSize) {
  const NcclTestsPlan tested = plan(AllReduce, 2, 1);
  const std::vector<NcclTestsRow> rows{{{4096, 1024}, 10, 8, 12.5, "Ring", "LL", 3}};
  EXPECT_EQ(nccl_tests_csv(tested, rows),
            "op,processes,gpus_per_process,ranks,size_bytes,time_us,algbw_gbps,busbw_gbps,"
            "algorithm,protocol,channels,low_us,high_us\n"
            "all_reduce,2,1,2,4096,10.000,0.4096,0.4096,Ring,LL,3,8.000,12.500\n");
}

}  // namespace
}  // namespace foretrace::test
