// Every scenario file simulated, against its golden. A golden moves only together with a commit
// message that says why.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "reports/timeline/timeline_json.h"
#include "scenarios/text/data_directory.h"
#include "tests/cli/shell.h"
#include "tests/golden/summary.h"

namespace foretrace::test {
namespace {

namespace fs = std::filesystem;

const fs::path kGoldens = data_directory() / "tests" / "golden";

/// scenarios/streams/x.yaml: tests/golden/streams/x.txt
fs::path golden_of(const Shipped& scenario) {
  return (kGoldens / fs::relative(scenario.file, "scenarios")).replace_extension(".txt");
}

/// The simulator is exact, but another libm or SimGrid may round a rate differently.
void expect_same(const Sum& golden, const Sum& now, const std::string& key) {
  EXPECT_EQ(golden.count, now.count) << key;
  const double tolerance_ns =
      static_cast<double>(golden.count) + 1e-6 * std::abs(static_cast<double>(golden.total_ns));
  EXPECT_NEAR(static_cast<double>(golden.total_ns), static_cast<double>(now.total_ns), tolerance_ns)
      << key;
}

void rewrite(const fs::path& file, const Shipped& scenario, const Summary& summary) {
  fs::create_directories(file.parent_path());
  std::ofstream out{file, std::ios::binary};
  out << "# foretrace simulate " << scenario.file << " --machine " << scenario.machine << "\n"
      << to_text(summary);
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
  const Summary now = summarise(read_timeline(scratch.path() / "run" / kPredictedFile));

  const fs::path file = golden_of(scenario);
  if (std::getenv("FORETRACE_REWRITE_GOLDENS") != nullptr) return rewrite(file, scenario, now);
  ASSERT_TRUE(fs::exists(file)) << file << " is missing: build the target rewrite_goldens";
  const Summary golden = from_text(read_file(file));
  for (const auto& [key, sum] : golden) {
    ASSERT_TRUE(now.contains(key)) << "no longer predicted: " << key;
    expect_same(sum, now.at(key), key);
  }
  for (const auto& [key, sum] : now) {
    EXPECT_TRUE(golden.contains(key)) << "not in the golden: " << key;
  }
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
