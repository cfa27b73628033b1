// Machines that are based on one with other links, slots or GPUs: what they take from it, and what
// they do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/machine/machine.h"
#include "models/nccl/time/cost.h"
#include "models/nccl/topology/machine.h"
#include "scenarios/base/text/errors.h"

namespace foretrace {
namespace {

using testing::HasSubstr;

Machine based_on_h100(const std::string& node, const std::string& more = "") {
  const std::string text =
      "schema_version: 2\nname: m\nbased_on: h100-nvswitch-8\nnode: {" + node + "}\n" + more;
  const auto machine = read_machine(text, "m.yaml");
  EXPECT_TRUE(machine.has_value()) << render(machine.error(), text);
  return machine.value_or(Machine{});
}

std::string errors_of_file(const std::string& text) {
  const auto machine = read_machine(text, "m.yaml");
  return machine ? "" : render(machine.error(), text);
}

/// An all-reduce of 1 GiB on all GPUs of one node, in ms.
double all_reduce_ms(const Machine& machine, std::uint32_t ranks) {
  Reading read{machine};
  const nccl::Tuning tuning = nccl::tuning_for(machine, ranks, 1, {});
  const Bytes size{std::uint64_t{1} << 30};
  return 1e3 * nccl::collective_time(read, tuning, {CollectiveKind::AllReduce, size}).terms.seconds;
}

TEST(LinkRules, CardsOnPcieHaveNcclsPriceAndNotTheTimesOfNvlink) {
  // NCCL's rings: one of 15 GB/s on eight L40S; 2 x 7/8 of a GiB over it are 125.3 ms.
  const Machine box =
      based_on_h100("gpus: 8, gpu: NVIDIA L40S, link: pcie_switch, pcie: 4, cpu: amd");
  EXPECT_NEAR(all_reduce_ms(box, 8), 125.3, 0.1);
  const double by_slot = 2 * 7.0 / 8 * 1.0737 / 32 * 1e3;  // 59 ms: what PCIe 4 can move
  EXPECT_GT(all_reduce_ms(box, 8), by_slot);
  const Machine slower =
      based_on_h100("gpus: 8, gpu: NVIDIA L40S, link: pcie_host, pcie: 3, cpu: amd");
  EXPECT_GT(all_reduce_ms(slower, 8), all_reduce_ms(box, 8));
}

TEST(LinkRules, TwoOfFourGpusWithoutSwitchesHaveAThirdOfTheirLinks) {
  const Machine mesh = load_machine("4xA100-SXM-80/nvlink-mesh");
  // Of 1 GiB each of two sends all, each of four 1.5 times as much, over three times the links.
  EXPECT_NEAR(all_reduce_ms(mesh, 2) / all_reduce_ms(mesh, 4), 3 / 1.5, 0.2);
  const Machine switched = load_machine("8xA100-SXM-80");
  EXPECT_NEAR(all_reduce_ms(switched, 2) / all_reduce_ms(switched, 4), 1 / 1.5, 0.1);
}

TEST(LinkRules, EveryOperationOfCardsOnPcieHasATime) {
  using enum CollectiveKind;
  for (const char* link : {"pcie_switch", "pcie_host", "nvlink_bridge"}) {
    const char* const gpu = std::string{link} == "nvlink_bridge" ? "NVIDIA A40" : "NVIDIA L40S";
    const Machine box =
        based_on_h100(std::string{"gpus: 8, gpu: "} + gpu + ", link: " + link + ", pcie: 4");
    for (const std::uint32_t ranks : {2u, 4u, 8u}) {
      const nccl::Tuning tuning = nccl::tuning_for(box, ranks, 1, {});
      for (const CollectiveKind kind :
           {AllReduce, AllGather, ReduceScatter, Broadcast, Reduce, AllToAll, Gather, Scatter}) {
        for (const std::uint64_t bytes : {8ull, 1ull << 20, 1ull << 28}) {
          Reading read{box};
          const double s = nccl::collective_time(read, tuning, {kind, Bytes{bytes}}).terms.seconds;
          EXPECT_GT(s, 0) << link << " " << ranks << " " << bytes;
          if (link[0] == 'p') EXPECT_GE(s, static_cast<double>(bytes) / 64e9) << link;
        }
      }
    }
  }
}

TEST(LinkRules, WhereNcclsSearchFindsNoChannelTheSlowestPathDecides) {
  // Blackwell's slowest channels are 18 GB/s, and between AMD's sockets NCCL counts 16: its search
  // goes back to 0.1 GB/s. 2 x 7/8 of a GiB at 16 GB/s are 117 ms; measured on eight RTX PRO 6000
  // were 76 ms (twice the 38.07 ms of 512 MiB).
  const Machine box = based_on_h100(
      "gpus: 8, gpu: NVIDIA RTX PRO 6000 Blackwell Server Edition, link: pcie_switch, pcie: 5, "
      "cpu: "
      "amd");
  EXPECT_NEAR(all_reduce_ms(box, 8), 117.5, 1);
}

TEST(LinkRules, BridgesJoinPairs) {
  // NVIDIA/nccl#1161: 9.31 ms on two H100 PCIe
  const Machine pair = based_on_h100("gpus: 2, gpu: NVIDIA H100 PCIe, link: nvlink_mesh");
  EXPECT_EQ(pair.rate(Param::NvlinkBandwidth), 300e9);
  EXPECT_GT(all_reduce_ms(pair, 2), 9);
  EXPECT_LT(all_reduce_ms(pair, 2), 11);
  const Machine pairs = based_on_h100("gpus: 8, gpu: NVIDIA H100 PCIe, link: nvlink_bridge");
  EXPECT_NEAR(all_reduce_ms(pairs, 2), all_reduce_ms(pair, 2), 1e-6);
  EXPECT_GT(all_reduce_ms(pairs, 8), 2 * all_reduce_ms(pairs, 2)) << "through PCIe between pairs";
}

TEST(LinkRules, BridgesThatDoNotExistAreRefused) {
  const std::string text = "schema_version: 2\nname: m\nbased_on: h100-nvswitch-8\n";
  const auto topology = [&](const std::string& node) {
    const auto machine = read_machine(text + "node: {" + node + "}\n", "m.yaml");
    nccl::topology_of(*machine, 2, 1);
  };
  EXPECT_THROW(topology("gpus: 8, gpu: NVIDIA H100 PCIe, link: nvlink_mesh"), UsageError);
  EXPECT_THROW(topology("gpus: 8, gpu: NVIDIA H100 PCIe, link: nvswitch"), UsageError);
  EXPECT_THROW(topology("gpus: 2, gpu: NVIDIA L40S, link: nvlink_bridge"), UsageError);
  EXPECT_NO_THROW(topology("gpus: 4, gpu: NVIDIA H200 NVL, link: nvlink_mesh"));
  for (const char* gpu : {"NVIDIA A40", "NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 2080 Ti",
                          "NVIDIA A100-PCIE-40GB"}) {
    EXPECT_NO_THROW(topology(std::string{"gpus: 2, gpu: "} + gpu + ", link: nvlink_bridge"));
  }
}

TEST(LinkRules, CopiesFollowTheSlotsGeneration) {
  const Machine base = load_machine("h100-nvswitch-8");
  const Machine older =
      based_on_h100("gpus: 8, gpu: NVIDIA H100 80GB HBM3, link: nvswitch, pcie: 4");
  EXPECT_DOUBLE_EQ(older.rate(Param::H2dBandwidth), base.rate(Param::H2dBandwidth) / 2);
  EXPECT_EQ(older.rate(Param::NvlinkBandwidth), base.rate(Param::NvlinkBandwidth));
}

TEST(Scale, CarriesRatiosOverByTheFactsThatAFileGives) {
  const Machine base = load_machine("h100-nvswitch-8");
  const Machine faster =
      based_on_h100("gpus: 8, gpu: NVIDIA H200, link: nvswitch",
                    "sources: {f: {class: datasheet, text: t}}\nscale: [memory, arithmetic]\n"
                    "parameters:\n  gpu.hbm_bandwidth: {value: 6700 GB/s, source: f}\n"
                    "  library.narrow.rate: {value: 1 GB/s, source: f}\n");
  const double ratio = 6700e9 / base.rate(Param::HbmBandwidth);
  EXPECT_DOUBLE_EQ(faster.rate(Param::LibrarySoftmaxRate),
                   ratio * base.rate(Param::LibrarySoftmaxRate));
  EXPECT_EQ(faster.rate(Param::LibraryNarrowRate), 1e9) << "its own";
  EXPECT_EQ(faster.rate(Param::ProductsHalfRate), base.rate(Param::ProductsHalfRate))
      << "no peak is given";
  EXPECT_THAT(errors_of_file("schema_version: 2\nname: m\nbased_on: h100-nvswitch-8\n"
                             "node: {gpus: 8, gpu: NVIDIA H200}\nscale: [memroy]\n"),
              HasSubstr("did you mean 'memory'?"));
}

TEST(Scale, GivesAB200WhatATrainingStepNeeds) {
  const Machine h200 = load_machine("h200-nvswitch-8"), b200 = load_machine("b200-nvswitch-8");
  EXPECT_DOUBLE_EQ(b200.rate(Param::LibrarySoftmaxRate),
                   8000.0 / 4800 * h200.rate(Param::LibrarySoftmaxRate));
  const double ratio = b200.rate(Param::ProductsHalfPeak) / h200.rate(Param::ProductsHalfPeak);
  EXPECT_GT(ratio, 2);
  EXPECT_LT(ratio, 2.4);
  EXPECT_DOUBLE_EQ(b200.rate(Param::ProductsHalfRate), ratio * h200.rate(Param::ProductsHalfRate));
  EXPECT_THAT(b200.get(Param::ProductsHalfRate).from,
              HasSubstr("ratio carried over from h200-nvswitch-8"));
}

TEST(MachineFile, NamesAreWordsAndCountsAreWhole) {
  const std::string rest = "node: {gpus: 8, gpu: NVIDIA H200}\n";
  const std::string head = "schema_version: 2\nbased_on: h100-nvswitch-8\n";
  EXPECT_THAT(errors_of_file(head + "name: {a: 1}\n" + rest), HasSubstr("'name' is a word"));
  EXPECT_THAT(errors_of_file(head + "name: \"\"\n" + rest), HasSubstr("'name' is a word"));
  EXPECT_THAT(errors_of_file(head + "name: m\nnode: {gpus: 2.5, gpu: NVIDIA H200}\n"),
              HasSubstr("2.5 is not a count"));
}

}  // namespace
}  // namespace foretrace
