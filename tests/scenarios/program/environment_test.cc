#include "scenarios/program/environment.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace foretrace {
namespace {

TEST(EnvironmentNumber, IsReadAsStrtollReadsIt) {
  EXPECT_EQ(environment_number("64"), 64);
  EXPECT_EQ(environment_number("0x40"), 64);
  EXPECT_EQ(environment_number("0100"), 64);
  EXPECT_EQ(environment_number("-2"), -2);
  EXPECT_EQ(environment_number("0"), 0);
}

TEST(EnvironmentNumber, HasNothingElseInIt) {
  for (const char* text : {"", "4M", "1e3", "0x", "--2", "-", "08", " 4", "99999999999999999999"}) {
    EXPECT_EQ(environment_number(text), std::nullopt) << text;
  }
}

TEST(CheckEnvironment, TakesWhatNcclTakes) {
  const Environment good{{"NCCL_ALGO", "allreduce:RING,tree;Broadcast:^Tree"},
                         {"NCCL_PROTO", "^LL128"},
                         {"NCCL_NTHREADS", "0x100"},
                         {"NCCL_P2P_LEVEL", "3"},
                         {"CUDA_SCALE_LAUNCH_QUEUES", "0.5x"},
                         {"NCCL_MIN_CTAS", "8"},
                         {"NCCL_MAX_CTAS", "8"},
                         {"SOMETHING_ELSE", "x"}};
  EXPECT_TRUE(check_environment(good).empty());
}

TEST(CheckEnvironment, TakesWhatStandsInMostPublicCommandLines) {
  const Environment public_ones{{"NCCL_DEBUG", "INFO"},
                                {"NCCL_IB_DISABLE", "1"},
                                {"NCCL_IB_GID_INDEX", "3"},
                                {"NCCL_IB_HCA", "mlx5_0:1,mlx5_1:1"},
                                {"NCCL_IB_QPS_PER_CONNECTION", "4"},
                                {"NCCL_MNNVL_ENABLE", "0"},
                                {"NCCL_NET_PLUGIN", "none"},
                                {"NCCL_SOCKET_IFNAME", "=eth0"}};
  EXPECT_TRUE(check_environment(public_ones).empty());
  for (const auto& [name, value] : public_ones) {
    EXPECT_EQ(std::ranges::count(environment_names(), name), 1) << name;
  }
}

TEST(CheckEnvironment, PluginsAreNotKnown) {
  const auto wrong = check_environment({{"NCCL_TUNER_PLUGIN", "x.so"}});
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_EQ(wrong[0].message,
            "NCCL_TUNER_PLUGIN=x.so: a plugin is a library of its own, and what it does is not "
            "known here");
}

TEST(UnknownVariable, IsRefusedByItsMeaningAndNeverByTheNameOfAnother) {
  EXPECT_EQ(unknown_variable("NCCL_TOPO_FILE").message,
            "'NCCL_TOPO_FILE' names a file with the machine's topology, which is not read");
  for (const char* name : {"NCCL_TOPO_FILE", "NCCL_GRAPH_FILE", "NCCL_DEBUG_FILE", "NCCL_SHOE"}) {
    EXPECT_EQ(unknown_variable(name).hint.find("did you mean"), std::string::npos) << name;
  }
  EXPECT_EQ(unknown_variable("NCCL_ALGOS").hint, "did you mean 'NCCL_ALGO'?");
}

TEST(CheckEnvironment, TellsEveryWrongVariableByName) {
  const auto wrong = check_environment({{"NCCL_ALGO", "rign"}, {"NCCL_MIN_CTAS", "many"}});
  ASSERT_EQ(wrong.size(), 2u);
  EXPECT_EQ(wrong[0].name, "NCCL_ALGO");
  EXPECT_EQ(wrong[0].message, "NCCL_ALGO=rign: NCCL knows no algorithm 'rign'");
  EXPECT_EQ(wrong[0].hint, "did you mean 'Ring'?");
  EXPECT_EQ(wrong[1].name, "NCCL_MIN_CTAS");
}

TEST(CheckEnvironment, RefusesALeastThatIsMoreThanTheMost) {
  const auto wrong = check_environment({{"NCCL_MIN_CTAS", "16"}, {"NCCL_MAX_CTAS", "8"}});
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_EQ(wrong[0].message, "NCCL_MIN_CTAS=16 is more than NCCL_MAX_CTAS=8");
}

}  // namespace
}  // namespace foretrace
