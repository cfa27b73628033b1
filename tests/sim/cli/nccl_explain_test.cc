// foretrace nccl-explain as a user runs it, and the settings it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "models/nccl/rules/settings.h"
#include "scenarios/base/command_line/command.h"
#include "sim/cli/commands.h"

namespace foretrace {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

struct CommandRun {
  int exit_code;
  std::string out, err;
};

CommandRun explain(std::vector<std::string> words) {
  words.insert(words.begin(), {"foretrace", "nccl-explain"});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = run_command_line(static_cast<int>(arguments.size()), arguments.data(), "test",
                                    "0", {add_nccl_explain_command});
  std::fflush(stdout);
  return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

TEST(NcclExplain, ShowsWhatEveryCandidateWouldCostAndWhoWon) {
  const CommandRun ran = explain({"all_reduce", "64MiB", "--env", "NCCL_NVLS_ENABLE=0"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("all_reduce of 64 MiB (float32, sum) on 8 ranks, NCCL 2.28.3\n"
                                 "1 node x 8 Hopper GPUs, NVSwitch\n"));
  // 56.0 + 67108864 / 205714 = 382.22
  EXPECT_THAT(ran.out,
              HasSubstr("| Ring          | Simple   |      56.00 | 205.71 |   382.22 | taken "));
  EXPECT_THAT(ran.out, HasSubstr("| CollNetDirect | all      |          - |      - |        - | "
                                 "out: needs the CollNet plug-in |"));
  EXPECT_THAT(ran.out, HasSubstr("Ring Simple is the cheapest: 382.22 us; next Ring LL128 at "
                                 "395.19 us, 3.4 % more\nkernel: 24 CTAs of 544 threads"));
}

TEST(NcclExplain, KnowsThatSendsHaveNoPrice) {
  const CommandRun ran = explain({"all_to_all", "1M", "--ranks", "4"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("each transfer: LL, 8 channels of 32 KiB, in chunks of 32 KiB\n"
                                 "kernel: 28 CTAs of 640 threads\n"));
}

TEST(NcclExplain, WritesJsonAndCsv) {
  const CommandRun json = explain({"broadcast", "4K", "--format", "json"});
  EXPECT_EQ(json.exit_code, 0) << json.err;
  const auto read = nlohmann::json::parse(json.out);
  EXPECT_EQ(read["protocol"], "LL");
  EXPECT_EQ(read["kernel"]["channels"], 1);
  EXPECT_EQ(read["candidates"].size(), 21u);
  const CommandRun csv = explain({"broadcast", "4K", "--format", "csv"});
  EXPECT_THAT(csv.out, HasSubstr("\nbroadcast,4096,8,Ring,LL,7.19999981,141,7.22904"));
}

struct Wrong {
  const char* what;
  std::vector<std::string> words;
  const char* says;
  friend std::ostream& operator<<(std::ostream& out, const Wrong& w) { return out << w.what; }
};
class NcclExplainWrongUse : public testing::TestWithParam<Wrong> {};
INSTANTIATE_TEST_SUITE_P(
    All, NcclExplainWrongUse,
    testing::Values(
        Wrong{"Operation", {"all_redcue", "4K"}, "did you mean 'all_reduce'?"},
        Wrong{"Size", {"all_reduce", "much"}, "size much"},
        Wrong{"Time", {"all_reduce", "4us"}, "is not a size"},
        Wrong{"Zero", {"all_reduce", "0"}, "is not a size"},
        Wrong{"Parts", {"all_gather", "12"}, "must be a multiple of 32 bytes"},
        Wrong{"Ranks", {"all_gather", "1K", "--ranks", "16", "--nodes", "1"}, "has 8 GPUs a node"},
        Wrong{"Nodes", {"all_gather", "1K", "--ranks", "3", "--nodes", "2"}, "spread evenly"},
        Wrong{"Name", {"reduce", "4", "--env", "NCCL_PROTOO=LL"}, "did you mean 'NCCL_PROTO'?"},
        Wrong{"Protocol", {"reduce", "4", "--env", "NCCL_PROTO=LL12"}, "did you mean 'LL128'?"},
        Wrong{"Algorithm", {"reduce", "4", "--env", "NCCL_ALGO=rng"}, "no algorithm 'rng'"},
        Wrong{"Function", {"reduce", "4", "--env", "NCCL_ALGO=x:ring"}, "no function 'x'"},
        Wrong{"Entry", {"reduce", "4", "--env", "NCCL_ALGO=ring;tree"}, "must name its function"},
        Wrong{"Number", {"reduce", "4", "--env", "NCCL_BUFFSIZE=4MB"}, "not a whole number"},
        Wrong{"Least", {"reduce", "4", "--env", "NCCL_MAX_CTAS=0"}, "NCCL takes 1 to 64"},
        Wrong{"Refused", {"reduce", "4", "--env", "NCCL_ALGO=Tree"}, "NCCL would refuse it"},
        Wrong{"Version", {"reduce", "4", "--nccl-version", "2.17"}, "known are 2.18.3 to 2.30"},
        Wrong{"VersionText", {"reduce", "4", "--nccl-version", "new"}, "is not an NCCL version"},
        Wrong{"Machine", {"reduce", "4", "--machine", "h100"}, "unknown machine 'h100'"},
        Wrong{"Type", {"reduce", "4", "--type", "flaot32"}, "did you mean 'float32'?"},
        Wrong{"Op", {"reduce", "4", "--op", "plus"}, "unknown reduction 'plus'"},
        Wrong{"Format", {"reduce", "4", "--format", "xml"}, "--format"}),
    [](const auto& tested) { return std::string{tested.param.what}; });

TEST_P(NcclExplainWrongUse, IsExitCodeTwoAndSaysWhy) {
  const CommandRun ran = explain(GetParam().words);
  EXPECT_EQ(ran.exit_code, kWrongUse);
  EXPECT_THAT(ran.err, HasSubstr(GetParam().says));
  EXPECT_THAT(ran.out, IsEmpty());
}

TEST(NcclSettings, ReadListsAsNcclDoes) {
  using enum nccl::Function;
  using enum nccl::Enable;
  const nccl::Settings settings{{"NCCL_PROTO=^LL128;allreduce:LL128", "NCCL_ALGO=Broadcast:RING"}};
  EXPECT_EQ(settings.enabled(AllGather, nccl::Protocol::LL128), No);
  EXPECT_EQ(settings.enabled(AllGather, nccl::Protocol::Simple), Yes);
  EXPECT_EQ(settings.enabled(AllReduce, nccl::Protocol::LL128), Yes);
  EXPECT_EQ(settings.enabled(AllReduce, nccl::Protocol::LL), No);
  EXPECT_EQ(settings.enabled(Broadcast, nccl::Algorithm::Tree), No);
  EXPECT_EQ(settings.enabled(AllReduce, nccl::Algorithm::Tree), Yes);
  EXPECT_EQ(nccl::Settings{}.enabled(AllReduce, nccl::Protocol::LL128), Default);
}

TEST(NcclSettings, OfP2pLevelTakeNamesAndOldNumbers) {
  EXPECT_EQ(nccl::Settings{{"NCCL_P2P_LEVEL=PXB"}}.p2p_level(), nccl::Path::Pxb);
  EXPECT_EQ(nccl::Settings{{"NCCL_P2P_LEVEL=5"}}.p2p_level(), nccl::Path::Sys);
  EXPECT_EQ(nccl::Settings{{"NCCL_P2P_DISABLE=1"}}.p2p_level(), nccl::Path::Loc);
  EXPECT_EQ(nccl::Settings{{"NCCL_P2P_DISABLE=0"}}.p2p_level(), std::nullopt);
}

}  // namespace
}  // namespace foretrace
