#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "reports/timeline/origin.h"
#include "reports/timeline/timeline_json.h"
#include "scenarios/read/scenario.h"
#include "sim/cli/commands.h"
#include "tests/reports/timeline_builder.h"
#include "tests/sim/cli/command_line.h"

namespace foretrace {
namespace {

using testing::HasSubstr;

constexpr const char* kFreeHost = R"(# The host is free while a kernel runs.
schema_version: 1
name: free_host
parameters: {time: 50us}
streams: {compute: {flags: non_blocking}}
threads:
  main:
    - spin: {id: kernel, stream: compute, duration: $time}
    - device_synchronize: {}
expect:
  - host_free: {after: kernel, within: 10us}
)";

class AssertCommand : public testing::Test {
 protected:
  AssertCommand() { std::ofstream{directory_ / "free_host.yaml"} << kFreeHost; }

  /// A run of the scenario in which the call of its kernel takes `call_ns`.
  void write_run(bool measured, std::int64_t call_ns, const ParameterValues& parameters = {}) {
    const Program program = load_scenario(directory_ / "free_host.yaml", parameters);
    test::TimelineBuilder b{measured};
    b.timeline.origin = origin_of(program);
    b.timeline.origin.measured = measured;
    b.timeline.ops = op_rows(program);
    b.span(0, b.host(), 0, call_ns);
    write_timeline(b.timeline, directory_ / (measured ? kMeasuredFile : kPredictedFile));
  }
  test::CommandRun run_assert(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"assert", directory_.path().string()});
    return test::run_command(add_assert_command, more);
  }
  test::TemporaryDirectory directory_;
};

TEST_F(AssertCommand, JudgesPredictedAndMeasuredAlike) {
  write_run(false, 9'000);
  write_run(true, 8'000);
  const auto ran = run_assert();
  EXPECT_EQ(ran.exit_code, kDone) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("| host free after kernel at most 10.00 us |   11 | holds     | "
                                 "9.000 us        | holds    | 8.000 us"));
}

TEST_F(AssertCommand, FailsWhenOneIsBroken) {
  write_run(false, 9'000);
  write_run(true, 11'000);
  const auto ran = run_assert();
  EXPECT_EQ(ran.exit_code, kBadAnswer);
  EXPECT_THAT(ran.out, HasSubstr("BROKEN"));
}

TEST_F(AssertCommand, JudgesWhatIsThere) {
  write_run(false, 9'000);
  const auto json = nlohmann::json::parse(run_assert({"--format", "json"}).out);
  const auto& row = json.at("expectations").at(0);
  EXPECT_EQ(row.at("predicted").at("verdict"), "holds");
  EXPECT_FALSE(row.contains("measured"));
}

TEST_F(AssertCommand, RefusesAnotherProgramUnlessItsParametersAreGiven) {
  write_run(false, 9'000, {{"time", "60us"}});
  const auto refused = run_assert();
  EXPECT_EQ(refused.exit_code, kWrongUse);
  EXPECT_THAT(refused.err, HasSubstr("of another program"));
  EXPECT_EQ(run_assert({"--set", "time=60us"}).exit_code, kDone);
}

TEST_F(AssertCommand, AsksForAScenarioThatItCannotFind) {
  write_run(false, 9'000);
  std::filesystem::rename(directory_ / "free_host.yaml", directory_ / "moved.yaml");
  EXPECT_THAT(run_assert().err, HasSubstr("--scenario FILE"));
  EXPECT_EQ(run_assert({"--scenario", (directory_ / "moved.yaml").string()}).exit_code, kDone);
}

}  // namespace
}  // namespace foretrace
