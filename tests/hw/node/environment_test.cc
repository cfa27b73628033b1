#include "hw/node/environment.h"

#include <gmock/gmock.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "hw/node/nvml.h"

namespace foretrace::hw {
namespace {

using testing::Contains;
using testing::Key;
using testing::Not;
using testing::Pair;

TEST(NamedVariables, AreThoseThatChangeWhatIsMeasuredOnly) {
  setenv("NCCL_ALGO", "Ring", 1);
  setenv("CUDA_MODULE_LOADING", "LAZY", 1);
  setenv("NCCL_COMM_ID", "10.0.0.1:4242", 1);
  setenv("NCCL_TOPO_FILE", "/home/me/topology.xml", 1);
  setenv("CUDA_VISIBLE_DEVICES", "GPU-8f1c", 1);
  setenv("SOME_SECRET", "hidden", 1);
  const auto variables = named_variables();
  EXPECT_THAT(variables, Contains(Pair("NCCL_ALGO", "Ring")));
  EXPECT_THAT(variables, Contains(Pair("CUDA_MODULE_LOADING", "LAZY")));
  EXPECT_THAT(variables, Not(Contains(Key("NCCL_COMM_ID"))));
  EXPECT_THAT(variables, Not(Contains(Key("NCCL_TOPO_FILE"))));
  EXPECT_THAT(variables, Not(Contains(Key("CUDA_VISIBLE_DEVICES"))));
  EXPECT_THAT(variables, Not(Contains(Key("SOME_SECRET"))));
  EXPECT_THAT(variables, Not(Contains(Key("PATH"))));
}

TEST(Environment, SaysNothingThatNamesTheComputer) {
  char host[256] = {};
  ASSERT_EQ(gethostname(host, sizeof host - 1), 0);
  const std::string text = describe_environment().dump();
  if (std::string{host}.size() > 3) {
    EXPECT_EQ(text.find(host), std::string::npos);
  }
  EXPECT_NE(text.find("\"kernel\""), std::string::npos);
  utsname system{};
  ASSERT_EQ(uname(&system), 0);
  const std::string release = system.release;
  if (release.find_first_not_of("0123456789.") != std::string::npos) {
    EXPECT_EQ(text.find(release), std::string::npos) << "it names a build";
  }
  EXPECT_EQ(text.find("pci"), std::string::npos);
}

TEST(Environment, KnowsTheLibrariesItWasBuiltWith) {
  const auto versions = software_versions();
  EXPECT_THAT(versions, Contains(Key("cuda")));
  EXPECT_THAT(versions, Contains(Key("nccl")));
  EXPECT_THAT(versions, Contains(Key("cublas")));
}

TEST(ThrottleReasons, HaveTheirNvmlNames) {
  EXPECT_EQ(throttle_reason_names(0), "none");
  EXPECT_EQ(throttle_reason_names(0x1 | 0x20), "gpu_idle, sw_thermal_slowdown");
}

}  // namespace
}  // namespace foretrace::hw
