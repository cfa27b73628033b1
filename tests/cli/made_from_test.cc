// Results remember what they were made from: what does not match is refused, not explained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;

nlohmann::json versions_of(const Scratch& scratch, const std::string& timeline) {
  return nlohmann::json::parse(read_file(scratch.path() / timeline))["versions"];
}

TEST(MadeFrom, ARunIsNotExplainedOnAnotherMachineOfTheName) {
  const Scratch scratch;
  ASSERT_EQ(scratch
                .run("sed 's|^  nvlink.bandwidth: {value: 450 GB/s|  nvlink.bandwidth: {value: "
                     "400 GB/s|' models/machines/h200-nvswitch-8.yaml >mine.yaml")
                .exit_code,
            0);
  const std::string simulate = "foretrace simulate scenarios/explain/straggler.yaml -o run ";
  ASSERT_EQ(scratch.run(simulate + "-m mine.yaml").exit_code, 0);
  const Ran other = scratch.run("foretrace explain run");
  EXPECT_EQ(other.exit_code, 2) << other.out;
  EXPECT_THAT(other.err, HasSubstr("predicted on another 'h200-nvswitch-8' than the one that is"));
  EXPECT_EQ(scratch.run("foretrace explain run -m mine.yaml").exit_code, 0);
  ASSERT_EQ(scratch.run(simulate).exit_code, 0);
  EXPECT_EQ(scratch.run("foretrace explain run").exit_code, 0);
}

TEST(MadeFrom, ARunAnImportAndAPlanNameTheirBuildAndWhatTheyRead) {
  const Scratch scratch;
  ASSERT_EQ(scratch.run("foretrace simulate scenarios/explain/straggler.yaml -o run").exit_code, 0);
  const auto run = versions_of(scratch, "run/predicted.timeline.json");
  EXPECT_EQ(run["machine_digest"].get<std::string>().size(), 36u);
  EXPECT_GE(run["build"].get<std::string>().size(), 32u) << run;
  const Ran plan = scratch.run(
      "foretrace plan gpt2 --gpus 2 --sequence 1024 --global-batch 8 --keep tensor=1 --keep "
      "pipeline=1 --keep micro=1 --keep recompute=none --top 1 -o plan.json");
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  const auto answer = nlohmann::json::parse(read_file(scratch.path() / "plan.json"));
  EXPECT_EQ(answer["build"], run["build"]);
  EXPECT_TRUE(answer["files"].contains("data:models/machines/h200-nvswitch-8.yaml")) << answer;
}

}  // namespace
}  // namespace foretrace::test
