#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "reports/timeline/timeline_json.h"
#include "scenarios/read/scenario.h"
#include "sim/cli/commands.h"
#include "tests/reports/compare/ordered_timeline.h"
#include "tests/reports/timeline_builder.h"
#include "tests/sim/cli/command_line.h"

namespace foretrace::test {
namespace {

TEST(OrderCommand, JudgesEveryRunAndEndsWithOneWhenOneIsWrong) {
  const TemporaryDirectory directory;
  std::ofstream{directory / "ordered.yaml"} << kOrderedScenario;
  const Program program = load_scenario(directory / "ordered.yaml");
  for (const std::string run : {"good", "bad"}) {
    std::filesystem::create_directory(directory / run);
    write_timeline(ordered_timeline(program, {.second_begin = run == "good" ? 20 : 5}),
                   directory / run / "measured.timeline.json");
  }
  const CommandRun good = run_command(add_order_command, {"order", (directory / "good").string()});
  EXPECT_EQ(good.exit_code, kDone) << good.err;
  const CommandRun both = run_command(
      add_order_command, {"order", (directory / "good").string(), (directory / "bad").string()});
  EXPECT_EQ(both.exit_code, kBadAnswer) << both.err;
  EXPECT_NE(both.out.find("line 11 (spin) begins 5 ns before line 8"), std::string::npos)
      << both.out;
}

}  // namespace
}  // namespace foretrace::test
