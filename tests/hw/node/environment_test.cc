#include "hw/node/environment.h"

#include <gmock/gmock.h>
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

TEST(NamedVariables, AreNcclsAndTheNamedOnesOnly) {
  setenv("NCCL_ALGO", "Ring", 1);
  setenv("CUDA_VISIBLE_DEVICES", "0", 1);
  setenv("SOME_SECRET", "hidden", 1);
  const auto variables = named_variables();
  EXPECT_THAT(variables, Contains(Pair("NCCL_ALGO", "Ring")));
  EXPECT_THAT(variables, Contains(Pair("CUDA_VISIBLE_DEVICES", "0")));
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
