// What foretrace simulate says of a captured step: its band, and whether it fits into memory.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A step of one kernel named `kernel`, of `world` ranks, with these peaks of memory.
std::string calls(const std::string& kernel, int world, std::int64_t allocated,
                  std::int64_t reserved) {
  return fmt::format(
      R"x({{"foretrace_calls":1,"torch":"2.11","depth":"emulated","rank":0,"world_size":{1},"host":{{"torch_loop_ns":20000000}},"assumptions":[]}}
{{"k":"begin","region":"step","instance":2,"t":0}}
{{"k":"name","i":0,"n":"{0}"}}
{{"k":"sig","i":0,"n":"aten::add","in":[{{"d":"f32","s":[65536,4096]}},{{"d":"f32","s":[65536,4096]}}]}}
{{"k":"op","i":0,"q":0,"ph":"forward"}}
{{"k":"launch","n":0,"g3":[65536,1,1],"b3":[128,1,1],"sm":0,"t":50000,"s":0,"op":0}}
{{"k":"end","region":"step","instance":2,"t":70000,"memory":{{"allocated":[1,{2},2],"reserved":[1,{3},2]}},"steps_cpu_ns":[70000,70000]}}
)x",
      kernel, world, allocated, reserved);
}

constexpr const char* kKnown =
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "std::array<char*, 3ul> >(int)";

class CapturedAnswer : public testing::Test {
 protected:
  Ran simulate(const std::string& record, int world, const std::string& more = "--format json") {
    scratch_.write("step.yaml", fmt::format("schema_version: 1\nname: step\nprocesses: "
                                            "{}\ncaptured_step:\n  calls: rank0.calls.jsonl\n",
                                            world));
    scratch_.write("rank0.calls.jsonl", record);
    return scratch_.run("foretrace simulate step.yaml -m h100-nvswitch-8 " + more);
  }
  double width(const std::string& record, int world) {
    const auto region = nlohmann::json::parse(simulate(record, world).out).at("regions").back();
    return region.at("high_ns").get<double>() / region.at("predicted_ns").get<double>() - 1;
  }
  Scratch scratch_;
};

TEST_F(CapturedAnswer, AKernelThatNoTableHasWidensTheBandByItsShare) {
  EXPECT_GT(width(calls("void a::new_kernel<float>(int)", 1, 300, 400), 1),
            2 * width(calls(kKnown, 1, 300, 400), 1));
}

TEST_F(CapturedAnswer, SeveralRanksWidenTheBand) {
  EXPECT_GT(width(calls(kKnown, 2, 300, 400), 2), width(calls(kKnown, 1, 300, 400), 1) + 0.01);
}

TEST_F(CapturedAnswer, WhatIsAllocatedBeyondTheGpuIsRefused) {
  const Ran refused = simulate(calls(kKnown, 1, 84'600'000'000, 84'700'000'000), 1);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("does not fit: 84.60 GB of memory are allocated at the peak, "
                                     "a GPU of h100-nvswitch-8 has 84.47 GB"));
}

TEST_F(CapturedAnswer, WhatIsReservedBeyondItIsOnTheBoundary) {
  const Ran near = simulate(calls(kKnown, 1, 80'000'000'000, 84'600'000'000), 1, "");
  EXPECT_EQ(near.exit_code, 0) << near.err;
  EXPECT_THAT(near.out, HasSubstr("on the boundary: the allocator has to give blocks back"));
  EXPECT_THAT(simulate(calls(kKnown, 1, 80'000'000'000, 84'400'000'000), 1, "").out,
              Not(HasSubstr("on the boundary")));
}

TEST_F(CapturedAnswer, HasTheSameWarningsInAReport) {
  std::string record = calls("void a::new_kernel<float>(int)", 1, 300, 400);
  record.replace(record.find("\"assumptions\":[]"), 16,
                 "\"assumptions\":[\"one value was guessed\"]");
  const Ran simulated = simulate(record, 1, "");
  EXPECT_THAT(simulated.err, HasSubstr("one value was guessed"));
  const Ran reported = scratch_.run("foretrace report step.yaml -m h100-nvswitch-8 -o page.html");
  EXPECT_EQ(reported.exit_code, 0) << reported.err;
  EXPECT_THAT(reported.err, HasSubstr(simulated.err));
}

}  // namespace
}  // namespace foretrace::test
