// Real nccl-tests output, as several versions of it print it, and CSV files of results.
#include <gtest/gtest.h>

#include "sim/applications/nccl_tests/compare.h"
#include "sim/applications/nccl_tests/output.h"

namespace foretrace::test {
namespace {

constexpr const char* kLog = R"(mpirun -np 4 ./build/all_gather_perf -b 1K -e 2K -f 2
# Collective test starting: all_gather_perf
# nThread 1 nGpus 2 minBytes 1024 maxBytes 2048 step: 2(factor) warmup iters: 5 iters: 50 agg iters: 1 validation: 1 graph: 7
#
# Using devices
#  Rank  0 Group  0 Pid    101 on     node1 device  0 [0000:1b:00] NVIDIA H200
#  Rank  1 Group  0 Pid    101 on     node1 device  1 [0000:43:00] NVIDIA H200
#  Rank  2 Group  0 Pid    102 on     node1 device  2 [0000:52:00] NVIDIA H200
#  Rank  3 Group  0 Pid    102 on     node1 device  3 [0000:61:00] NVIDIA H200
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
        1024            64     float    none      -1    12.34    0.08    0.06      0    12.11    0.08    0.06      0
node1:101:123 [0] NCCL INFO something in between
        2048           128     float    none      -1    13.50    0.15    0.11      0    13.11    0.16    0.12      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.0855
#
)";

std::vector<NcclTestsSample> read_log(const std::string& text, NcclTestsAssumed assumed = {}) {
  const auto read = read_nccl_tests_log(text, "x.log", assumed);
  EXPECT_TRUE(read.has_value()) << render(read.error(), text);
  return read.value_or(std::vector<NcclTestsSample>{});
}

TEST(NcclTestsLog, TellsWhoTookPartHowOftenAndHowLongItTook) {
  const auto samples = read_log(kLog);
  ASSERT_EQ(samples.size(), 2u);
  const NcclTestsPlan& plan = samples[1].plan;
  EXPECT_EQ(plan.op, NcclTestsOp::AllGather);
  EXPECT_EQ(plan.processes, 2u);
  EXPECT_EQ(plan.gpus, 2u);
  EXPECT_EQ(plan.nodes, 1u);
  EXPECT_EQ(plan.iterations, 50u);
  EXPECT_EQ(plan.warmup, 5u);
  EXPECT_EQ(plan.graph_launches, 7u);
  EXPECT_EQ(samples[1].bytes, 2048u);
  EXPECT_EQ(samples[1].time_us, 13.5);
}

TEST(NcclTestsLog, OfAnOldVersionHasNoRootAndNoName) {
  const std::string text =
      "# nThread 1 nGpus 8 minBytes 8 maxBytes 128 step: 2(factor) warmup iters: 5 iters: 100\n"
      "#       size         count    type   redop     time   algbw   busbw  error     time\n"
      "           8             2   float     sum    34.27    0.00    0.00  1e-07    33.57    0.00 "
      "   0.00  5e-08\n";
  NcclTestsAssumed assumed;
  const auto without = read_nccl_tests_log(text, "x.log", assumed);
  ASSERT_FALSE(without.has_value());
  EXPECT_NE(without.error().front().hint.find("--op-name"), std::string::npos);
  assumed.op = NcclTestsOp::AllReduce;
  const auto samples = read_log(text, assumed);
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].time_us, 34.27);
  EXPECT_EQ(samples[0].plan.gpus, 8u);
  EXPECT_EQ(samples[0].plan.redop, "sum");
}

TEST(NcclTestsLog, OfSeveralRunsKeepsThemApart) {
  std::string second = kLog;
  for (auto at = second.find("all_gather"); at != std::string::npos;
       at = second.find("all_gather")) {
    second.replace(at, 10, "alltoall");
  }
  const auto samples = read_log(kLog + second);
  ASSERT_EQ(samples.size(), 4u);
  EXPECT_EQ(samples[1].plan.op, NcclTestsOp::AllGather);
  EXPECT_EQ(samples[2].plan.op, NcclTestsOp::AllToAll);
  EXPECT_EQ(samples[2].plan.processes, 2u);
}

TEST(NcclTestsLog, PointsAtWhatIsNoNumber) {
  std::string text = kLog;
  text.replace(text.find("13.50"), 5, "13.x0");
  const auto read = read_nccl_tests_log(text, "x.log", {});
  ASSERT_FALSE(read.has_value());
  const std::string shown = render(read.error(), text);
  EXPECT_NE(shown.find("x.log:16:57: error: '13.x0' is not a number"), std::string::npos) << shown;
  EXPECT_NE(shown.find("^"), std::string::npos);
}

TEST(NcclTestsLog, ThatEndsInTheMiddleOfALineIsRefused) {
  const std::string text = std::string{kLog}.substr(0, std::string{kLog}.find("13.50"));
  const auto read = read_nccl_tests_log(text, "x.log", {});
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().front().at.line, 16);
}

TEST(NcclTestsText, IsReadBackAsItWasPrinted) {
  NcclTestsPlan plan;
  plan.op = NcclTestsOp::Broadcast;
  plan.processes = 2;
  plan.threads = 2;
  plan.root = 3;
  plan.blocking = 3;
  plan.type = "half";
  const std::vector<NcclTestsRow> rows{{{4096, 2048}, 12345.678, 1, 1, "Ring", "LL", 1}};
  Machine machine;
  machine.name = "m";
  const auto samples = read_log(nccl_tests_text(plan, {}, machine, rows));
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].time_us, 12345.7);
  EXPECT_EQ(nccl_tests_scenario(samples[0].plan, {{20, 0}}), nccl_tests_scenario(plan, {{20, 0}}));
}

constexpr const char* kCsv =
    "source,gpu,nodes,gpus,collective,bytes,time_us,algbw_GBps,busbw_GBps,note\n"
    "\"a, b\",A100,1,8,all_reduce,1024,36.5,,,single process -g 8\n"
    "c,H200,1,8,alltoall,1048576,,,100,\n";

TEST(NcclTestsCsvFile, GivesATimeAlsoFromABandwidth) {
  const auto read = read_nccl_tests_csv(kCsv, "x.csv", {});
  ASSERT_TRUE(read.has_value()) << render(read.error(), kCsv);
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ(read->at(0).plan.gpus, 8u) << "the note says one process";
  EXPECT_EQ(read->at(1).plan.processes, 8u);
  // 1 MiB at 100 GB/s on the bus, of which 7/8 cross a link: 1048576 * 7/8 / 100e9 s
  EXPECT_NEAR(read->at(1).time_us, 9.175, 0.001);
}

TEST(NcclTestsCsvFile, MayBeginWithTheMarkOfSpreadsheets) {
  const std::string text =
      "\xef\xbb\xbf"
      "collective,bytes,gpus,time_us\nall_reduce,1024,8,36.5\n";
  const auto read = read_nccl_tests_csv(text, "x.csv", {});
  ASSERT_TRUE(read.has_value()) << render(read.error(), text);
  EXPECT_EQ(read->size(), 1u);
}

TEST(NcclTestsCsvFile, IsReadInPartWithWhere) {
  NcclTestsAssumed assumed;
  assumed.where = {{"gpu", "H2"}};
  EXPECT_EQ(read_nccl_tests_csv(kCsv, "x.csv", assumed)->size(), 1u);
  assumed.where = {{"gpuu", "H2"}};
  EXPECT_FALSE(read_nccl_tests_csv(kCsv, "x.csv", assumed).has_value());
}

TEST(NcclTestsCsvFile, TellsTheReleaseWhoseRulesChoose) {
  const std::string text =
      "nccl,nodes,gpus,collective,bytes,time_us\n"
      "2.21.5,1,8,all_reduce,1024,36.5\n"
      "2.18,1,8,all_reduce,1024,36.5\n"
      "unknown,1,8,all_reduce,1024,36.5\n"
      "2.10.3,1,8,all_reduce,1024,36.5\n";
  const auto read = read_nccl_tests_csv(text, "x.csv", {});
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->at(0).plan.nccl, "2.21.5");
  EXPECT_EQ(read->at(1).plan.nccl, "2.18.3");
  EXPECT_EQ(read->at(2).plan.nccl, "") << "the machine's";
  EXPECT_EQ(read->at(3).plan.nccl, "") << "rules that are not known";
  NcclTestsAssumed told;
  told.plan.nccl = "2.28.9";
  EXPECT_EQ(read_nccl_tests_csv(text, "x.csv", told)->at(0).plan.nccl, "2.28.9");
}

TEST(NcclTestsComparison, PredictsEachReleaseByItsOwnRules) {
  std::vector<NcclTestsSample> samples;
  for (const char* version : {"2.18.3", "2.21.5"}) {
    NcclTestsSample sample;
    sample.plan.nodes = 2;
    sample.plan.processes = 8;
    sample.plan.nccl = version;
    sample.bytes = 512 << 10;
    sample.time_us = 300;
    samples.push_back(sample);
  }
  const auto both = compare_nccl_tests(samples, load_machine("a100-slingshot-4"));
  ASSERT_EQ(both.size(), 2u) << "apart, though all else is the same";
  EXPECT_EQ(both[0].rows.front().predicted.algorithm, "Tree");
  EXPECT_EQ(both[1].rows.front().predicted.algorithm, "Ring");
}

TEST(NcclTestsCsvFile, PointsAtTheCellThatIsWrong) {
  std::string text = kCsv;
  text.replace(text.find("1048576"), 7, "1O48576");
  const auto read = read_nccl_tests_csv(text, "x.csv", {});
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().front().at.line, 3);
  EXPECT_EQ(read.error().front().at.column, 21);
}

TEST(NcclTestsComparison, TakesTheMedianOfASizeAndCountsItsErrorAgainstIt) {
  NcclTestsSample sample;
  sample.plan.processes = 2;
  sample.bytes = 1 << 20;
  std::vector<NcclTestsSample> samples;
  for (const double us : {1e6, 50.0, 1.0}) {
    sample.time_us = us;
    samples.push_back(sample);
  }
  const auto comparisons = compare_nccl_tests(samples, load_machine("h200-nvswitch-8"));
  ASSERT_EQ(comparisons.size(), 1u);
  ASSERT_EQ(comparisons[0].rows.size(), 1u);
  const NcclTestsComparedRow& row = comparisons[0].rows[0];
  EXPECT_EQ(row.median_us, 50);
  EXPECT_DOUBLE_EQ(row.error, row.predicted.time_us / 50 - 1);
  EXPECT_LE(row.in_band, 1u) << "1 us and 1 s are not in any band";
  EXPECT_EQ(worst_error(comparisons), std::abs(row.error));
}

}  // namespace
}  // namespace foretrace::test
