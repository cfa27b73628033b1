// What foretrace simulate says of a captured step: its band, and whether it fits into memory.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/captured_step.h"
#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A step of one kernel named `kernel`, of `world` ranks, with these peaks of memory.
std::string calls(const std::string& kernel, int world, std::int64_t allocated,
                  std::int64_t reserved, const std::string& assumptions = {}) {
  return record_of({.calls = fmt::format(
                        R"x({{"k":"name","i":0,"n":"{}"}}
{{"k":"sig","i":0,"n":"aten::add","in":[{{"d":"f32","s":[65536,4096]}},{{"d":"f32","s":[65536,4096]}}]}}
{{"k":"op","i":0,"q":0,"ph":"forward"}}
{{"k":"launch","n":0,"g3":[65536,1,1],"b3":[128,1,1],"sm":0,"t":50000,"s":0,"op":0}}
)x",
                        kernel),
                    .world = world,
                    .allocated = allocated,
                    .reserved = reserved,
                    .assumptions = assumptions});
}

constexpr const char* kKnown =
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "std::array<char*, 3ul> >(int)";

class CapturedAnswer : public testing::Test {
 protected:
  Ran simulate(const std::string& record, int world, const std::string& more = "--format json") {
    scratch_.write("step.yaml", scenario_of(world));
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

TEST_F(CapturedAnswer, HasTheSameBandInASweep) {
  const auto alone =
      nlohmann::json::parse(simulate(calls("void a::new_kernel<float>(int)", 1, 300, 400), 1).out)
          .at("regions")
          .back();
  const Ran swept = scratch_.run("foretrace sweep step.yaml --machine h100-nvswitch-8 -o s.jsonl");
  ASSERT_EQ(swept.exit_code, 0) << swept.err;
  const std::string rows = read_file(scratch_.path() / "s.jsonl");
  const std::size_t begin = rows.find('\n') + 1;  // behind the head; the digests of files follow
  const std::string row = rows.substr(begin, rows.find('\n', begin) - begin);
  const auto point = nlohmann::json::parse(row).at("regions").back();
  EXPECT_NEAR(point.at("high_us").get<double>() / point.at("us").get<double>(),
              alone.at("high_ns").get<double>() / alone.at("predicted_ns").get<double>(), 1e-3);
}

TEST_F(CapturedAnswer, WhatDoesNotFitIsNoPointOfASweep) {
  simulate(calls(kKnown, 1, 84'600'000'000, 84'700'000'000), 1);
  const Ran swept = scratch_.run("foretrace sweep step.yaml --machine h100-nvswitch-8 -o s.jsonl");
  EXPECT_EQ(swept.exit_code, 2);
  EXPECT_THAT(swept.err, HasSubstr("does not fit: 84.60 GB of memory are allocated at the peak"));
}

TEST_F(CapturedAnswer, HasTheSameWarningsInAReport) {
  const std::string record =
      calls("void a::new_kernel<float>(int)", 1, 300, 400, "\"one value was guessed\"");
  const Ran simulated = simulate(record, 1, "");
  EXPECT_THAT(simulated.err, HasSubstr("one value was guessed"));
  const Ran reported = scratch_.run("foretrace report step.yaml -m h100-nvswitch-8 -o page.html");
  EXPECT_EQ(reported.exit_code, 0) << reported.err;
  EXPECT_THAT(reported.err, HasSubstr(simulated.err));
}

TEST_F(CapturedAnswer, WhatIsNotKnownToBeReservedIsNotSaid) {
  const std::string out = simulate(calls(kKnown, 1, 300, 0), 1, "").out;
  EXPECT_THAT(out, HasSubstr("what PyTorch's allocator keeps beyond is not known"));
  EXPECT_THAT(out, Not(HasSubstr("reserved, as PyTorch's allocator does")));
}

}  // namespace
}  // namespace foretrace::test
