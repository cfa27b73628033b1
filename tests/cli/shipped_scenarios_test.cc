// Every scenario file of the repository, through the command line.
#include <gtest/gtest.h>

#include "tests/cli/shell.h"

namespace foretrace::test {
namespace {

namespace fs = std::filesystem;

class ShippedScenario : public testing::TestWithParam<Shipped> {
 protected:
  Ran simulate(const std::string& run) {
    return scratch_.run("foretrace simulate " + GetParam().file + " --machine " +
                        GetParam().machine + " -o " + run);
  }
  Scratch scratch_;
};
INSTANTIATE_TEST_SUITE_P(All, ShippedScenario, testing::ValuesIn(shipped_scenarios()),
                         [](const auto& tested) { return test_name(tested.param); });

TEST(ShippedScenarios, SayInTheirFirstLineWhatTheyShow) {
  const Scratch scratch;
  for (const Shipped& scenario : shipped_scenarios()) {
    const std::string text = read_file(scratch.path() / scenario.file);
    const std::string first = text.substr(0, text.find('\n'));
    EXPECT_EQ(first.substr(0, 2), "# ") << scenario.file << ": " << first;
    EXPECT_GE(first.size(), 40U) << scenario.file << ": " << first;
  }
}

TEST_P(ShippedScenario, PassesCheckUnlessItHangsAndWarnsExactlyWhenItShould) {
  const Ran check = scratch_.run("foretrace check " + GetParam().file);
  EXPECT_EQ(check.exit_code, GetParam().hangs ? 1 : 0) << check.err;
  EXPECT_EQ(!check.err.empty(), GetParam().warns) << check.err;
}

TEST_P(ShippedScenario, EndsOrHangsAtChunkFidelityAsAtFlowFidelityAndKeepsWhatItStates) {
  const Ran chunk = scratch_.run("foretrace simulate " + GetParam().file + " --machine " +
                                 GetParam().machine + " --fidelity chunk -o run");
  ASSERT_EQ(chunk.exit_code, GetParam().exit_code()) << chunk.err;
  if (GetParam().hangs) {
    EXPECT_EQ(chunk.err, simulate("flow").err) << "who waits for whom";
  }
  if (!GetParam().states) return;
  const Ran kept = scratch_.run("foretrace assert run");
  EXPECT_EQ(kept.exit_code, 0) << kept.out;
}

TEST_P(ShippedScenario, SimulatedTwiceGivesIdenticalBytesThatHoldWhatItStates) {
  const Ran first = simulate("a");
  ASSERT_EQ(first.exit_code, GetParam().exit_code()) << first.err;
  simulate("b");
  int files = 0;
  for (const auto& entry : fs::directory_iterator{scratch_.path() / "a"}) {
    const fs::path twin = scratch_.path() / "b" / entry.path().filename();
    // Not EXPECT_EQ: a difference would print megabytes.
    EXPECT_TRUE(read_file(entry.path()) == read_file(twin)) << entry.path().filename();
    ++files;
  }
  EXPECT_GE(files, 1);
  if (!GetParam().states) return;
  const Ran assertion = scratch_.run("foretrace assert a");
  EXPECT_EQ(assertion.exit_code, 0) << assertion.out << assertion.err;
}

}  // namespace
}  // namespace foretrace::test
