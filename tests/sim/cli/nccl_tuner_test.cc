// foretrace nccl-tuner as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "scenarios/base/command_line/command.h"
#include "sim/cli/commands.h"

namespace foretrace {
namespace {

using testing::HasSubstr;

struct TunerRun {
  int exit_code;
  std::string out, err;
};

TunerRun tune(std::vector<std::string> words) {
  words.insert(words.begin(), {"foretrace", "nccl-tuner"});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = run_command_line(static_cast<int>(arguments.size()), arguments.data(), "test",
                                    "0", {add_nccl_tuner_command});
  std::fflush(stdout);
  return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

TEST(NcclTuner, WritesNoRowWhoseBandIncludesNoGainAndCountsThem) {
  const TunerRun ran = tune({"--processes", "2", "--format", "json"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto read = nlohmann::json::parse(ran.out);
  EXPECT_GT(read["left_out_unsure"], 0);
  ASSERT_FALSE(read["rows"].empty());
  for (const auto& row : read["rows"]) {
    EXPECT_GT(row["low"], 1.0) << row;
    EXPECT_GT(row["own_us"], row["other_us"]) << row;
    EXPECT_FALSE(row["settings"].empty()) << row;
  }
}

TEST(NcclTuner, WritesAFileForTheExamplePluginWithoutHoles) {
  const auto path = std::filesystem::path{testing::TempDir()} / "nccl_tuner.conf";
  const TunerRun ran = tune(
      {"all_reduce", "broadcast", "-b", "1K", "-e", "64M", "--processes", "2", "--tuner", path});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  std::ifstream file{path};
  std::map<std::string, std::uint64_t> next;  // of each operation
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    ASSERT_LT(line.size(), 256u) << "what the plug-in reads of a line";
    std::istringstream cells{line};
    std::vector<std::string> words;
    for (std::string cell; std::getline(cells, cell, ',');) words.push_back(cell);
    ASSERT_EQ(words.size(), 10u) << line;
    const std::uint64_t first = std::stoull(words[1]);
    EXPECT_EQ(first, next.contains(words[0]) ? next[words[0]] : 1024u) << line;
    next[words[0]] = std::stoull(words[2]) + 1;
    // It cannot have more channels than NCCL made: 24 on this node.
    EXPECT_GE(std::stoi(words[5]), 1) << line;
    EXPECT_LE(std::stoi(words[5]), 24) << line;
    EXPECT_EQ(words[6] + words[7], "12") << line;
  }
  EXPECT_EQ(next, (std::map<std::string, std::uint64_t>{{"allreduce", (64u << 20) + 1},
                                                        {"broadcast", (64u << 20) + 1}}));
}

TEST(NcclTuner, RefusesWhatHasNoChoice) {
  EXPECT_THAT(tune({"alltoall"}).err, HasSubstr("NCCL has no choice of algorithm for alltoall"));
  EXPECT_THAT(tune({"--processes", "1"}).err, HasSubstr("no choice with one rank"));
  EXPECT_EQ(tune({"-b", "1M", "-e", "1K"}).exit_code, 2);
  EXPECT_THAT(tune({"--env", "NCCL_PROTO=LL129"}).err, HasSubstr("NCCL_PROTO"));
}

TEST(NcclTuner, RefusesWhatWouldBeTakenInSilence) {
  EXPECT_THAT(tune({"-b", "0", "-e", "1K"}).err, HasSubstr("-b 0: a size is at least 1"));
  EXPECT_THAT(tune({"--processes", "0"}).err, HasSubstr("--processes 0"));
  EXPECT_THAT(tune({"--nodes", "4000000000"}).err, HasSubstr("--nodes 4000000000: at most"));
  EXPECT_THAT(tune({"reduce", "reduce"}).err, HasSubstr("reduce is named twice"));
  EXPECT_THAT(tune({"--env", "LD_PRELOAD=x"}).err, HasSubstr("'LD_PRELOAD'"));
  EXPECT_THAT(tune({"--env", "NCCL_TUNER_PLUGIN=x.so"}).err, HasSubstr("plugin"));
  EXPECT_THAT(tune({"--env", "NCCL_ALGO=Ring", "--env", "NCCL_ALGO=Tree"}).err,
              HasSubstr("NCCL_ALGO is set twice"));
}

}  // namespace
}  // namespace foretrace
