// Every scenario file of the repository, through the command line, against its golden. A golden
// moves only together with a commit message that says why.
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "scenarios/base/text/data_directory.h"
#include "tests/golden/golden.h"

namespace foretrace::test {
namespace {

namespace fs = std::filesystem;

/// The sanitized program for one scenario in three, where ./test.sh has built one beside this; with
/// --all it runs them all.
fs::path twin(const Shipped& scenario) {
  const char* const sanitized = std::getenv("FORETRACE_SANITIZED_TWIN");
  const bool is_conformance = scenario.file.starts_with("scenarios/conformance/");
  const bool is_third = std::accumulate(scenario.file.begin(), scenario.file.end(), 0) % 3 == 0;
  return sanitized == nullptr || is_conformance || !is_third ? tested_program() : sanitized;
}

/// A run without the build of the program that made it: the twin is of another compiler.
std::string of_any_build(std::string run) {
  const std::string key = "\"build\":";
  const std::size_t begin = run.find(key);
  if (begin == std::string::npos) return run;
  const std::size_t value = run.find('"', begin + key.size());
  return run.erase(value, run.find('"', value + 1) - value);
}

class ShippedScenario : public testing::TestWithParam<Shipped> {
 protected:
  void simulate_into(const std::string& run, const std::string& more = {},
                     const fs::path& program = tested_program()) {
    simulated_ =
        scratch_.run_with(program, "foretrace simulate " + GetParam().file + " --machine " +
                                       GetParam().machine + " -o " + run + more);
    ASSERT_EQ(simulated_.exit_code, GetParam().exit_code()) << simulated_.err;
  }
  void expect_check_warns_exactly_when_it_should() const {
    const Ran check = scratch_.run("foretrace check " + GetParam().file);
    EXPECT_EQ(check.exit_code, GetParam().hangs ? 1 : 0) << check.err;
    EXPECT_EQ(!check.err.empty(), GetParam().warns) << check.err;
  }
  void expect_it_keeps_what_it_states(const std::string& run) const {
    if (!GetParam().states) return;
    const Ran kept = scratch_.run("foretrace assert " + run);
    EXPECT_EQ(kept.exit_code, 0) << run << ": " << kept.out << kept.err;
  }
  void expect_same_bytes(const fs::path& run, const fs::path& again) const {
    int files = 0;
    for (const auto& entry : fs::directory_iterator{scratch_.path() / run}) {
      const fs::path twin = scratch_.path() / again / entry.path().filename();
      // Not EXPECT_EQ: a difference would print megabytes.
      EXPECT_TRUE(of_any_build(read_file(entry.path())) == of_any_build(read_file(twin)))
          << entry.path().filename();
      ++files;
    }
    EXPECT_GE(files, 1);
  }

  Scratch scratch_;
  Ran simulated_;
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

TEST(Goldens, HaveAScenarioEach) {
  for (const auto& entry : fs::recursive_directory_iterator{goldens()}) {
    if (entry.path().extension() != ".txt" || entry.path().filename() == "CMakeLists.txt") continue;
    const fs::path scenario =
        fs::path{"scenarios"} / fs::relative(entry.path(), goldens()).replace_extension(".yaml");
    EXPECT_TRUE(fs::exists(data_directory() / scenario)) << entry.path();
  }
}

/// One test, since each program that is started costs as much as most of these simulations.
TEST_P(ShippedScenario, IsTheSameTwiceItsGoldenAndAtBothFidelitiesWhatItStates) {
  simulate_into("flow");
  const std::string who_waits = simulated_.err;
  const Recorded now = recorded_in(scratch_.path() / "flow");
  if (std::getenv("FORETRACE_REWRITE_GOLDENS") != nullptr) {
    rewrite_golden(GetParam(), now);
    return;
  }
  EXPECT_EQ(difference_from_golden(GetParam(), now), "");
  expect_check_warns_exactly_when_it_should();
  expect_it_keeps_what_it_states("flow");
  simulate_into("again", {}, twin(GetParam()));
  expect_same_bytes("flow", "again");
  simulate_into("chunk", " --fidelity chunk");
  if (GetParam().hangs) {
    EXPECT_EQ(simulated_.err, who_waits);
  }
  expect_it_keeps_what_it_states("chunk");
}

}  // namespace
}  // namespace foretrace::test
