// Every scenario file simulated, against its golden. A golden moves only together with a commit
// message that says why.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "reports/timeline/timeline_json.h"
#include "scenarios/text/data_directory.h"
#include "tests/cli/shell.h"
#include "tests/golden/recorded.h"

namespace foretrace::test {
namespace {

namespace fs = std::filesystem;

const fs::path kGoldens = data_directory() / "tests" / "golden";

/// scenarios/streams/x.yaml: tests/golden/streams/x.txt
fs::path golden_of(const Shipped& scenario) {
  return (kGoldens / fs::relative(scenario.file, "scenarios")).replace_extension(".txt");
}

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
  const Recorded now = record(read_timeline(scratch.path() / "run" / kPredictedFile));

  const fs::path file = golden_of(scenario);
  if (std::getenv("FORETRACE_REWRITE_GOLDENS") != nullptr) return rewrite(file, scenario, now);
  ASSERT_TRUE(fs::exists(file)) << file << " is missing: build the target rewrite_goldens";
  const std::string differs = difference(from_text(read_file(file)), now);
  EXPECT_TRUE(differs.empty()) << file.string() << "\n" << differs;
}

TEST(Goldens, HaveAScenarioEach) {
  for (const auto& entry : fs::recursive_directory_iterator{kGoldens}) {
    if (entry.path().extension() != ".txt" || entry.path().filename() == "CMakeLists.txt") continue;
    const fs::path scenario =
        fs::path{"scenarios"} / fs::relative(entry.path(), kGoldens).replace_extension(".yaml");
    EXPECT_TRUE(fs::exists(data_directory() / scenario)) << entry.path();
  }
}

}  // namespace
}  // namespace foretrace::test
