// Predicted tables of other owners' runs: what NCCL of the log's release chooses, and bands as wide
// as such predictions were off.
#include <gtest/gtest.h>

#include "scenarios/base/text/diagnostic.h"
#include "sim/applications/nccl_tests/compare.h"

namespace foretrace::test {
namespace {

struct Row {
  const char* bytes;
  const char* us;
};

/// A log of two columns that count, behind `prefix`; the hosts' ranks in turn.
std::string log_of(const std::string& prefix, const std::string& library, int hosts, int gpus,
                   const char* gpu, const std::vector<Row>& rows) {
  std::string text = prefix + "# nccl-tests version 2.17.1" + library + "\n" + prefix +
                     "# Collective test starting: all_reduce_perf\n" + prefix +
                     "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 "
                     "iters: 20 agg iters: 1 validation: 1 graph: 0\n" +
                     prefix + "# Using devices\n";
  for (int rank = 0; rank < hosts * gpus; ++rank) {
    text += prefix + "#  Rank " + std::to_string(rank) + " Group  0 Pid 1 on node" +
            std::to_string(rank / gpus) + " device  " + std::to_string(rank % gpus) + " [0x0a] " +
            gpu + "\n";
  }
  text +=
      prefix + "#       size         count      type   redop    root     time   algbw   busbw\n";
  for (const Row& row : rows) {
    const double us = std::stod(row.us), bytes = std::stod(row.bytes);
    const double algorithm = bytes * 1e-3 / us;
    const int ranks = hosts * gpus;
    const std::string side = std::string{row.us} + " " + std::to_string(algorithm) + " " +
                             std::to_string(algorithm * 2 * (ranks - 1) / ranks) + " 0";
    text += prefix + row.bytes + " " + std::to_string(std::stoull(row.bytes) / 4) +
            " float sum -1 " + side + " " + side + "\n";
  }
  return text + prefix + "# Avg bus bandwidth    : 1\n";
}

std::vector<NcclTestsComparedRow> compared(const std::string& log, const Machine& machine,
                                           const NcclTestsPlan& plan) {
  NcclTestsAssumed assumed;
  assumed.plan = plan;
  const auto samples = read_nccl_tests_log(log, "x.log", assumed);
  EXPECT_TRUE(samples.has_value()) << render(samples.error(), log);
  return compare_nccl_tests(*samples, machine).front().rows;
}

TEST(NcclTestsBands, HoldTreesOfOneGpuInEachNodeWhichNoTableHas) {
  // NVIDIA/nccl-tests#232: two nodes of one H100, NCCL_ALGO=Tree
  NcclTestsPlan plan;
  plan.environment["NCCL_ALGO"] = "Tree";
  const std::string log = log_of("", "", 2, 1, "NVIDIA H100 80GB HBM3",
                                 {{"2097152", "113.2"},
                                  {"4194304", "154.4"},
                                  {"8388608", "231.4"},
                                  {"16777216", "420.5"},
                                  {"33554432", "812.3"}});
  for (const NcclTestsComparedRow& row : compared(log, load_machine("h100-nvswitch-8"), plan)) {
    EXPECT_EQ(row.in_band, 1u) << row.predicted.size.bytes;
  }
}

TEST(NcclTestsBands, OfFiveNodesBehindTimeStamps) {
  // NVIDIA/nccl#1368: 5 nodes of 8 H100 with 4 NICs, rings; 1 GiB at 190 GB/s
  const std::string text =
      "schema_version: 2\nname: m\nbased_on: h100-nvswitch-8\nnode: {count: 16, gpus: 8, gpu: "
      "NVIDIA H100 80GB HBM3, link: nvswitch, cpu: intel, nics: 4, nic_bandwidth: 50 GB/s}\n";
  NcclTestsPlan plan;
  plan.environment["NCCL_ALGO"] = "Ring";
  plan.nccl = "2.20.5";
  const std::string log =
      log_of("Thu Jul 18 15:41:05 2024<stdout>:", "", 5, 8, "NVIDIA H100 80GB HBM3",
             {{"1048576", "354.9"}, {"1073741824", "11020"}});
  const auto rows = compared(log, *read_machine(text, "m.yaml"), plan);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_NEAR(rows[1].predicted.time_us, 11160, 50);
  EXPECT_EQ(rows[0].in_band + rows[1].in_band, 2u);
}

TEST(NcclTestsRelease, OfALogChooses) {
  // two nodes of 4 A100 on Slingshot; NCCL 2.18.5 takes trees where 2.27.3 takes rings
  const auto predicted = [](const char* code) {
    const std::string log =
        log_of("", std::string{" nccl-headers="} + code + " nccl-library=" + code, 2, 4,
               "NVIDIA A100-SXM4-40GB", {{"524288", "215"}, {"2097152", "530"}});
    return compared(log, load_machine("a100-slingshot-4"), {});
  };
  const auto old = predicted("21805"), now = predicted("22703");
  EXPECT_EQ(old[0].predicted.algorithm, "Tree");
  EXPECT_NEAR(old[0].predicted.time_us, 211.5, 1);
  EXPECT_NEAR(old[1].predicted.time_us, 527.4, 1);
  EXPECT_EQ(now[0].predicted.algorithm, "Ring");
}

}  // namespace
}  // namespace foretrace::test
