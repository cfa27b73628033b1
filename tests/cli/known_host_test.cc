// foretrace simulate --host: a captured program on a host whose reference loop is known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/captured_step.h"
#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;

class KnownHostCommand : public testing::Test {
 protected:
  void SetUp() override {
    scratch_.write("step.yaml", scenario_of());
    constexpr const char* kLate = "{\"k\":\"memset\",\"n\":1024,\"t\":6000000,\"s\":0}\n";
    scratch_.write("rank0.calls.jsonl", record_of({.calls = kLate, .ns = 7'000'000}));
  }
  Ran simulate(const std::string& more) {
    return scratch_.run("foretrace simulate step.yaml -m h100-nvswitch-8 " + more);
  }
  nlohmann::json region(const std::string& more) {
    return nlohmann::json::parse(simulate("--format json " + more).out).at("regions").back();
  }
  Scratch scratch_;
};

TEST_F(KnownHostCommand, AHostWithASlowerLoopTakesLongerByLessThanTheLoop) {
  scratch_.write("slow.yaml",
                 "foretrace_host: 1\nname: \"slow\"\npython_loop: 100ms\ntorch_loop: 48ms\n");
  const double typical = region("").at("predicted_ns").get<double>();
  const double slow = region("--host slow.yaml").at("predicted_ns").get<double>();
  EXPECT_GT(slow, 1.2 * typical);
  EXPECT_LT(slow, 1.6 * typical) << "twice the loop";
}

TEST_F(KnownHostCommand, TheBandIsNarrowerWhereTheHostIsKnown) {
  scratch_.write("known.yaml", "foretrace_host: 1\ntorch_loop: 24ms\n");
  const auto typical = region(""), known = region("--host known.yaml");
  EXPECT_NEAR(known.at("predicted_ns").get<double>(), typical.at("predicted_ns").get<double>(),
              2000);
  EXPECT_GT(known.at("low_ns").get<double>(), typical.at("low_ns").get<double>());
  EXPECT_LT(known.at("high_ns").get<double>(), typical.at("high_ns").get<double>());
}

TEST_F(KnownHostCommand, TheAnswerSaysWhichHostItStandsFor) {
  scratch_.write("known.yaml", "foretrace_host: 1\ntorch_loop: 17.2ms\n");
  EXPECT_THAT(simulate("").out,
              HasSubstr("host: a typical one, whose reference loop takes 24.0 ms"));
  EXPECT_THAT(simulate("--host known.yaml").out,
              HasSubstr("host: as its reference loop in known.yaml, 17.2 ms"));
}

TEST_F(KnownHostCommand, ABadFileIsRefusedWithItsLine) {
  scratch_.write("bad.yaml", "foretrace_host: 1\ntorch_loop: 17\n");
  const Ran bad = simulate("--host bad.yaml");
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(
      bad.err,
      HasSubstr("bad.yaml:2:13: error: torch_loop: '17' is not a time between 0.1ms and 10s"));
  scratch_.write("other.yaml", "foretrace_host: 1\ntorch_lop: 17ms\n");
  EXPECT_THAT(simulate("--host other.yaml").err, HasSubstr("torch_loop"));
}

TEST_F(KnownHostCommand, OtherScenariosHaveNoSuchHost) {
  scratch_.write("plain.yaml",
                 "schema_version: 1\nname: plain\nprocesses: 1\nthreads:\n  - ops:\n      - "
                 "device_synchronize: {}\n");
  scratch_.write("known.yaml", "foretrace_host: 1\ntorch_loop: 24ms\n");
  const Ran refused = scratch_.run("foretrace simulate plain.yaml --host known.yaml");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--host"));
}

}  // namespace
}  // namespace foretrace::test
