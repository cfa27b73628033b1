// The settings that change what NCCL does, asked of every command that knows: nccl-explain,
// nccl-tests and simulate must give one answer, and it is the one that NCCL 2.28's source gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

struct Choice {
  std::string algorithm, protocol;
  int channels = 0;
  friend bool operator==(const Choice&, const Choice&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Choice& c) {
    return out << c.algorithm << ' ' << c.protocol << ' ' << c.channels;
  }
};
struct Answer {
  Choice choice;
  double us = 0;
};

class Ask {
 public:
  Ask(std::string op, std::string size, std::vector<std::string> settings)
      : op_{std::move(op)}, size_{std::move(size)} {
    for (const std::string& setting : settings) env_ += " --env '" + setting + "'";
  }

  Choice explain(std::string more = {}) const {
    const Ran ran = scratch_.run("foretrace nccl-explain " + op_ + " " + size_ + " --format json" +
                                 env_ + more);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    const json read = json::parse(ran.out);
    return {read.value("algorithm", std::string{"Ring"}), read["protocol"],
            read["kernel"]["channels"]};
  }

  Answer nccl_tests() const {
    const Ran ran = scratch_.run(tests() + " --format csv");
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    std::istringstream lines{ran.out};
    std::string line;
    std::getline(lines, line);
    std::getline(lines, line);
    std::vector<std::string> cells;
    std::istringstream row{line};
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    if (cells.size() != 13) return {};
    return {{cells[8], cells[9], std::stoi(cells[10])}, std::stod(cells[5])};
  }

  Answer simulate() const {
    EXPECT_EQ(scratch_.run(tests() + " --scenario x.yaml").exit_code, 0);
    const Ran ran = scratch_.run("foretrace simulate x.yaml -o run");
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    const json timeline = json::parse(read_file(scratch_.path() / "run/predicted.timeline.json"));
    const json& region = timeline["regions"][0];
    const double us = region["samples_ns"][0].get<double>() * 1e-3 / region["per"].get<double>();
    for (const json& detail : timeline["details"]) {
      if (detail.contains("channels")) {
        return {{detail["algorithm"], detail["protocol"], detail["channels"]}, us};
      }
    }
    return {};
  }

 private:
  std::string tests() const {
    // A graph's operations would go the registered way, which nccl-explain takes when it is asked.
    return "foretrace nccl-tests " + op_ + " -b " + size_ +
           " --processes 8 -n 4 -G 1 --env NCCL_GRAPH_REGISTER=0" + env_;
  }

  Scratch scratch_;
  std::string op_, size_, env_;
};

enum class Time { Same, More, Less };

struct Case {
  const char* what;
  const char* op;
  const char* size;
  std::vector<std::string> settings;
  Choice choice;
  Time time;
  friend std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.what; }
};

class Settings : public testing::TestWithParam<Case> {};
// 8 H200s: 12 rings at 30 GB/s, so 24 channels. An LL ring takes a channel for every
// 512 threads x 8 ranks x 8 B = 32 KiB. A send/recv begins on 4 of 32 channels and doubles them
// while one carries more than 32 steps of the chunk size.
INSTANTIATE_TEST_SUITE_P(
    Of, Settings,
    testing::Values(
        Case{"Nothing", "all_reduce", "64M", {}, {"Ring", "Simple", 24}, Time::Same},
        Case{"Algo", "all_reduce", "64M", {"NCCL_ALGO=tree"}, {"Tree", "Simple", 24}, Time::More},
        Case{"AlgoOfAFunction",
             "all_reduce",
             "64M",
             {"NCCL_ALGO=ring;allreduce:^ring,nvls"},
             {"Tree", "Simple", 24},
             Time::More},
        Case{"AlgoOfAnother",
             "all_reduce",
             "64M",
             {"NCCL_ALGO=^tree;broadcast:ring"},
             {"Ring", "Simple", 24},
             Time::Same},
        Case{"ProtoLl", "all_reduce", "64M", {"NCCL_PROTO=LL"}, {"Ring", "LL", 24}, Time::More},
        Case{"ProtoLl128",
             "all_reduce",
             "64M",
             {"NCCL_PROTO=LL128"},
             {"Ring", "LL128", 24},
             Time::More},
        Case{"ProtoSimple",
             "all_reduce",
             "512K",
             {"NCCL_PROTO=^LL,LL128", "NCCL_ALGO=ring"},
             {"Ring", "Simple", 16},
             Time::More},  // 512 KiB / (512 threads x 64 B)
        Case{
            "MaxCtas", "all_reduce", "64M", {"NCCL_MAX_CTAS=4"}, {"Ring", "Simple", 4}, Time::More},
        Case{"MinCtas",
             "all_reduce",
             "2M",
             {"NCCL_MIN_CTAS=32", "NCCL_PROTO=LL"},
             {"Ring", "LL", 32},
             Time::Less},
        Case{"MaxChannels",
             "all_reduce",
             "64M",
             {"NCCL_MAX_NCHANNELS=8"},
             {"Ring", "Simple", 8},
             Time::More},
        Case{"Threads",
             "all_reduce",
             "16K",
             {"NCCL_NTHREADS=128"},
             {"Ring", "LL", 2},
             Time::Less},  // 128 threads are worth 8 KiB
        Case{"P2pDisable",
             "all_reduce",
             "64M",
             {"NCCL_P2P_DISABLE=1"},
             {"Tree", "Simple", 4},
             Time::More},
        Case{"Nvls",
             "all_reduce",
             "64M",
             {"NCCL_NVLS_ENABLE=1"},
             {"NVLS", "Simple", 16},
             Time::Less},
        Case{"NvlsAuto",
             "all_reduce",
             "64M",
             {"NCCL_NVLS_ENABLE=2"},
             {"NVLS", "Simple", 16},
             Time::Less},
        Case{"NvlsChannels",
             "all_reduce",
             "64M",
             {"NCCL_NVLS_ENABLE=1", "NCCL_NVLS_NCHANNELS=8"},
             {"NVLS", "Simple", 8},
             Time::Less},
        Case{"SendRecv", "sendrecv", "64M", {}, {"Ring", "Simple", 4}, Time::Same},
        Case{"Buffsize",
             "sendrecv",
             "64M",
             {"NCCL_BUFFSIZE=1048576"},
             {"Ring", "Simple", 16},
             Time::Less},  // an eighth of it is the chunk: 4 MiB for a channel
        Case{"P2pChunk",
             "sendrecv",
             "64M",
             {"NCCL_P2P_NVL_CHUNKSIZE=65536"},
             {"Ring", "Simple", 32},
             Time::Less},
        Case{"P2pPciChunk",
             "sendrecv",
             "64M",
             {"NCCL_P2P_PCI_CHUNKSIZE=65536"},
             {"Ring", "Simple", 4},
             Time::Same},  // not over NVLink
        Case{"P2pLlThreshold",
             "sendrecv",
             "16K",
             {"NCCL_P2P_LL_THRESHOLD=0"},
             {"Ring", "Simple", 1},
             Time::More},
        Case{"MaxP2pChannels",
             "sendrecv",
             "64M",
             {"NCCL_MAX_P2P_NCHANNELS=2"},
             {"Ring", "Simple", 2},
             Time::More},
        Case{"P2pMinCtas",
             "alltoall",
             "64M",
             {"NCCL_MAX_CTAS=4"},
             {"Ring", "Simple", 4},
             Time::More}),
    [](const auto& tested) { return std::string{tested.param.what}; });

TEST_P(Settings, ChangeTheSameThingEverywhere) {
  const Case& c = GetParam();
  const Ask plain{c.op, c.size, {}};
  const Ask set{c.op, c.size, c.settings};
  EXPECT_EQ(set.explain(), c.choice);
  const Answer tests = set.nccl_tests();
  EXPECT_EQ(tests.choice, c.choice);
  const Answer simulated = set.simulate();
  EXPECT_EQ(simulated.choice, c.choice);
  const Answer before_tests = plain.nccl_tests();
  const Answer before_simulated = plain.simulate();
  for (const auto& [before, after] :
       {std::pair{before_tests.us, tests.us}, std::pair{before_simulated.us, simulated.us}}) {
    ASSERT_GT(before, 0);
    const double change = after / before - 1;
    switch (c.time) {
      case Time::Same:
        EXPECT_DOUBLE_EQ(after, before);
        break;
      case Time::More:
        EXPECT_GT(change, 0.005) << after << " us";
        break;
      case Time::Less:
        EXPECT_LT(change, -0.005) << after << " us";
        break;
    }
  }
}

TEST(NcclExplainOfTheMachine, FollowsItsNvls) {
  const Scratch scratch;
  const Ran off = scratch.run("foretrace nccl-explain all_reduce 64M");
  EXPECT_THAT(off.out, HasSubstr("NVLS is off on this machine"));
  scratch.write("on.yaml",
                "schema_version: 2\nname: on\nbased_on: h200-nvswitch-8\n"
                "node: {gpus: 8, gpu: NVIDIA H200}\n"
                "sources: {on: {class: assumed, text: switched on}}\n"
                "parameters: {nccl.nvls: {value: 1, source: on}}\n");
  const Ran on = scratch.run("foretrace nccl-explain all_reduce 64M --machine on.yaml");
  EXPECT_EQ(on.exit_code, 0) << on.err;
  EXPECT_THAT(on.out, HasSubstr("NVLS Simple is the cheapest"));
  const Ran tests = scratch.run(
      "foretrace nccl-tests all_reduce -b 64M --processes 8 --machine on.yaml "
      "--format csv");
  EXPECT_THAT(tests.out, HasSubstr(",NVLS,Simple,16,"));
}

// 64 KiB and 256 KiB differ by four times, so each is chosen for alone; two of 256 KiB are chosen
// for as 512 KiB.
TEST(NcclExplainOfAGroup, ChoosesForOperationsAlikeTogether) {
  const Scratch scratch;
  const auto explain = [&](const std::string& calls) {
    const Ran ran = scratch.run("foretrace nccl-explain " + calls + " --format json");
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return json::parse(ran.out);
  };
  const json one = explain("all_reduce 256K");
  const json two = explain("all_reduce 256K all_reduce 256K");
  const json double_one = explain("all_reduce 512K");
  ASSERT_EQ(two["group"].size(), 2u);
  EXPECT_EQ(two["group"][0]["price_us"], double_one["price_us"]);
  EXPECT_NE(two["group"][0]["price_us"], one["price_us"]);
  EXPECT_EQ(two["kernel"]["channels"], 24);  // each may take 16, and there are 24
  const json apart = explain("all_reduce 64K all_reduce 256K");
  EXPECT_EQ(apart["group"][1]["price_us"], one["price_us"]);
}

TEST(NcclExplainOfAGroup, PutsSendsAndCollectivesIntoOneKernel) {
  const Scratch scratch;
  const Ran ran = scratch.run(
      "foretrace nccl-explain all_reduce 4K send_recv 1M alltoall 8M gather 8M "
      "scatter 8M --format json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const json read = json::parse(ran.out);
  ASSERT_EQ(read["group"].size(), 5u);
  EXPECT_EQ(read["group"][0]["channels"], 1);
  EXPECT_EQ(read["group"][1]["channels"], 4);
  EXPECT_EQ(read["group"][2]["op"], "all_to_all");
  EXPECT_EQ(read["kernel"]["channels"], 32);
  EXPECT_EQ(read["kernel"]["threads"], 640);
  const Ran csv = scratch.run("foretrace nccl-explain all_reduce 4K send_recv 1M --format csv");
  EXPECT_THAT(csv.out, HasSubstr("\nsend_recv,1048576,8,,Simple,,,4,"));
}

}  // namespace
}  // namespace foretrace::test
