// Every scenario file simulated, against its golden. A golden moves only together with a commit
// message that says why.
#include "tests/golden/golden.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "scenarios/text/data_directory.h"

namespace foretrace::test {
namespace {

namespace fs = std::filesystem;

void rewrite(const fs::path& file, const Shipped& scenario, const Recorded& recorded) {
  const std::string text = to_text(recorded);
  ASSERT_EQ(to_text(from_text(text)), text);
  ASSERT_EQ(from_text(text).lanes, recorded.lanes) << "the text stands for other spans";
  fs::create_directories(file.parent_path());
  std::ofstream out{file, std::ios::binary};
  out << "# foretrace simulate " << scenario.file << " --machine " << scenario.machine << "\n"
      << text;
  ASSERT_TRUE(out.good()) << file;
}

class Golden : public testing::TestWithParam<Shipped> {};
INSTANTIATE_TEST_SUITE_P(All, Golden, testing::ValuesIn(shipped_scenarios()),
                         [](const auto& tested) { return test_name(tested.param); });

TEST_P(Golden, PredictsWhatItPredictedBefore) {
  const Shipped& scenario = GetParam();
  const Scratch scratch;
  const Ran ran = scratch.run("foretrace simulate " + scenario.file + " --machine " +
                              scenario.machine + " -o run");
  ASSERT_EQ(ran.exit_code, scenario.exit_code()) << ran.err;
  const Recorded now = recorded_in(scratch.path() / "run");
  if (std::getenv("FORETRACE_REWRITE_GOLDENS") != nullptr) {
    return rewrite(golden_of(scenario), scenario, now);
  }
  EXPECT_EQ(difference_from_golden(scenario, now), "");
}

TEST(Goldens, HaveAScenarioEach) {
  for (const auto& entry : fs::recursive_directory_iterator{goldens()}) {
    if (entry.path().extension() != ".txt" || entry.path().filename() == "CMakeLists.txt") continue;
    const fs::path scenario =
        fs::path{"scenarios"} / fs::relative(entry.path(), goldens()).replace_extension(".yaml");
    EXPECT_TRUE(fs::exists(data_directory() / scenario)) << entry.path();
  }
}

}  // namespace
}  // namespace foretrace::test
