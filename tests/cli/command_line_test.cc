// Exit codes, help and output of the program foretrace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr const char* kScenario = "scenarios/examples/prefetch_two_streams.yaml";
constexpr const char* kSimulate =
    "foretrace simulate scenarios/examples/prefetch_two_streams.yaml --machine h200-nvswitch-8";

class CommandLine : public testing::Test {
 protected:
  /// What a command that failed must not leave behind.
  bool left_files(const std::string& run) const {
    const fs::path dir = scratch_.path() / run;
    return fs::exists(dir) && !fs::is_empty(dir);
  }
  Scratch scratch_;
};

TEST_F(CommandLine, HelpListsEveryCommandAndVersionPrintsTheVersion) {
  const Ran help = scratch_.run("foretrace --help");
  EXPECT_EQ(help.exit_code, 0);
  for (const char* command :
       {"check", "simulate", "compare", "assert", "report", "export", "list"}) {
    EXPECT_THAT(help.out, HasSubstr(std::string{"\n  "} + command + " "));
  }
  const Ran version = scratch_.run("foretrace --version");
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, StartsWith("foretrace " FORETRACE_VERSION ", SimGrid "));
}

/// The words in the first column of the list of subcommands.
std::vector<std::string> listed_commands(const std::string& help) {
  std::vector<std::string> commands;
  std::istringstream lines{help.substr(help.find("Subcommands:"))};
  for (std::string line; std::getline(lines, line) && !line.empty();) {
    if (line.size() > 2 && line.substr(0, 2) == "  " && line[2] != ' ') {
      commands.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
  }
  return commands;
}

TEST_F(CommandLine, HelpOfEveryCommandBeginsWithAnExample) {
  const auto commands = listed_commands(scratch_.run("foretrace --help").out);
  EXPECT_GE(commands.size(), 7U);
  for (const std::string& command : commands) {
    const Ran help = scratch_.run("foretrace " + command + " --help");
    EXPECT_EQ(help.exit_code, 0) << command;
    EXPECT_THAT(help.out, StartsWith("Example:\n  foretrace " + command + " "));
  }
}

struct WrongUse {
  const char* what;
  const char* command;
  const char* says;
  friend std::ostream& operator<<(std::ostream& out, const WrongUse& w) { return out << w.command; }
};
class WrongUses : public testing::TestWithParam<WrongUse> {};
INSTANTIATE_TEST_SUITE_P(
    All, WrongUses,
    testing::Values(
        WrongUse{"NoCommand", "foretrace", "a command is needed"},
        WrongUse{"UnknownCommand", "foretrace simulat", "did you mean 'simulate'?"},
        WrongUse{
            "UnknownFlag",
            "foretrace simulate scenarios/examples/prefetch_two_streams.yaml --machin x -o run",
            "did you mean '--machine'?"},
        WrongUse{"MissingFile", "foretrace check no_such_file.yaml", "no_such_file.yaml"},
        WrongUse{"MissingFileToSimulate",
                 "foretrace simulate no_such_file.yaml --machine h200-nvswitch-8 -o run",
                 "no_such_file.yaml"},
        WrongUse{"UnknownMachine",
                 "foretrace simulate scenarios/examples/prefetch_two_streams.yaml "
                 "--machine h200-nvswitch-9 -o run",
                 "did you mean 'h200-nvswitch-8'?"},
        WrongUse{"TooFewGpus",
                 "foretrace simulate scenarios/examples/all_reduce_one_thread_8_gpus.yaml "
                 "--machine v100-pcie-4 -o run",
                 "8"},
        WrongUse{"NoTimelineToCompare", "mkdir run_of_nothing && foretrace compare run_of_nothing",
                 "timeline.json"},
        WrongUse{"UnknownExportFormat", "foretrace export run --to pdf", "pdf"}),
    [](const auto& tested) { return std::string{tested.param.what}; });

TEST_P(WrongUses, ExitsWithTwoSaysWhyAndLeavesNothing) {
  const Scratch scratch;
  const Ran ran = scratch.run(GetParam().command);
  EXPECT_EQ(ran.exit_code, 2) << ran.out << ran.err;
  EXPECT_THAT(ran.err, HasSubstr(GetParam().says));
  EXPECT_THAT(ran.out, IsEmpty());
  EXPECT_FALSE(fs::exists(scratch.path() / "run")) << "left something behind";
}

TEST_F(CommandLine, ABadScenarioExitsWithTwoAndLeavesNothing) {
  scratch_.write(
      "bad.yaml",
      "# Wrong.\nschema_version: 1\nname: bad\nthreads: {main: [{spin: {duratoin: 5us}}]}\n");
  for (const char* command : {"foretrace check bad.yaml",
                              "foretrace simulate bad.yaml --machine h200-nvswitch-8 -o run"}) {
    const Ran ran = scratch_.run(command);
    EXPECT_EQ(ran.exit_code, 2);
    EXPECT_THAT(ran.err, HasSubstr("bad.yaml:4:"));
    EXPECT_THAT(ran.err, HasSubstr("did you mean 'duration'?"));
  }
  EXPECT_FALSE(left_files("run"));
}

TEST_F(CommandLine, ADirectoryThatCannotBeWrittenExitsWithFour) {
  const Ran ran = scratch_.run(std::string{kSimulate} + " -o /proc");
  EXPECT_EQ(ran.exit_code, 4) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("/proc/"));
}

TEST_F(CommandLine, ARunThatDoesNotMeetItsExpectationExitsWithOne) {
  // One 200 us kernel cannot end within 100 us.
  scratch_.write(
      "slow.yaml",
      "# A kernel that takes longer than the file states.\n"
      "schema_version: 1\nname: slow\nthreads:\n  main:\n"
      "    - region: {name: all, ops: [{spin: {duration: 200us}}, {device_synchronize: {}}]}\n"
      "expect:\n  - total: {region: all, at_most: 100us}\n");
  ASSERT_EQ(scratch_.run("foretrace simulate slow.yaml --machine h200-nvswitch-8 -o run").exit_code,
            0);
  const Ran assertion = scratch_.run("foretrace assert run");
  EXPECT_EQ(assertion.exit_code, 1) << assertion.err;
}

TEST_F(CommandLine, WritesNoColourIntoAPipe) {
  const Ran good = scratch_.run(std::string{kSimulate} + " -o run");
  EXPECT_EQ(good.exit_code, 0) << good.err;
  const Ran bad = scratch_.run("foretrace check no_such_file.yaml");
  for (const std::string& text : {good.out, good.err, bad.out, bad.err}) {
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  }
}

TEST_F(CommandLine, SimulateLeavesNoTemporaryFile) {
  ASSERT_EQ(scratch_.run(std::string{kSimulate} + " -o run").exit_code, 0);
  bool timeline = false;
  for (const auto& entry : fs::directory_iterator{scratch_.path() / "run"}) {
    EXPECT_NE(entry.path().extension(), ".tmp");
    timeline |= entry.path().filename() == "predicted.timeline.json";
  }
  EXPECT_TRUE(timeline);
}

TEST_F(CommandLine, ListsEveryShippedScenario) {
  const Ran list = scratch_.run("foretrace list scenarios");
  EXPECT_EQ(list.exit_code, 0) << list.err;
  for (const Shipped& scenario : shipped_scenarios()) {
    EXPECT_THAT(list.out, HasSubstr(fs::path{scenario.file}.stem().string()));
  }
}

TEST_F(CommandLine, ComparesARunWithItsShippedMeasurement) {
  const std::string measured = "reports/measured/prefetch_two_streams/measured.timeline.json";
  ASSERT_TRUE(fs::exists(scratch_.path() / measured));
  ASSERT_EQ(scratch_.run(std::string{kSimulate} + " -o run").exit_code, 0);
  const Ran compare = scratch_.run("cp " + measured + " run/ && foretrace compare run");
  EXPECT_EQ(compare.exit_code, 0) << compare.err;
  EXPECT_THAT(compare.out, HasSubstr("pipeline"));
  const Ran report = scratch_.run("foretrace report run -o report.html");
  EXPECT_EQ(report.exit_code, 0) << report.err;
  EXPECT_THAT(read_file(scratch_.path() / "report.html"), HasSubstr("pipeline"));
}

TEST_F(CommandLine, TheSameScenarioChecksWithoutAWord) {
  const Ran check = scratch_.run(std::string{"foretrace check "} + kScenario);
  EXPECT_EQ(check.exit_code, 0);
  EXPECT_THAT(check.err, IsEmpty());
}

TEST(List, OpsWithTheirKeys) {
  const Scratch scratch;
  const Ran ran = scratch.run("foretrace list ops --keys");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("\nmemcpy_async: {"));
  EXPECT_THAT(ran.out, HasSubstr("\nrepeat: {[index] times ops}\n    runs its operations several"));
  EXPECT_EQ(scratch.run("foretrace list machines --keys").exit_code, 2);
}

}  // namespace
}  // namespace foretrace::test
