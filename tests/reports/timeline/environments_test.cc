// What is recorded of a computer, and that nothing committed names one.
#include "reports/timeline/environments.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "reports/timeline/timeline_json.h"
#include "scenarios/base/text/data_directory.h"
#include "tests/reports/timeline_builder.h"

namespace foretrace::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

TEST(Environments, KeepVariablesThatScenariosMaySetAndNoAddresses) {
  EXPECT_TRUE(is_recorded_variable("NCCL_ALGO"));
  EXPECT_TRUE(is_recorded_variable("CUDA_DEVICE_MAX_CONNECTIONS"));
  EXPECT_TRUE(is_recorded_variable("NCCL_IB_DISABLE"));
  for (const char* name :
       {"NCCL_COMM_ID", "NCCL_TOPO_FILE", "NCCL_DEBUG_FILE", "NCCL_SOCKET_IFNAME", "NCCL_HOSTID",
        "NCCL_VERSION", "CUDA_VISIBLE_DEVICES", "PATH", "NCCL_"}) {
    EXPECT_FALSE(is_recorded_variable(name)) << name;
  }
}

TEST(Environments, LeaveOutValuesThatAreNoNumbersOrWords) {
  const Json recorded = recorded_environment(
      {{"variables", {{"NCCL_ALGO", "allreduce:ring;tree"}, {"NCCL_PROTO", "/home/me/LL"}}}});
  EXPECT_EQ(recorded.at("variables"), Json({{"NCCL_ALGO", "allreduce:ring;tree"}}));
}

TEST(Environments, AreStoredOnceAndFoundFromBelow) {
  const TemporaryDirectory root;
  const Json one = recorded_environment({{"host", {{"cpu", "X"}, {"kernel", "Linux 6.8-31-x"}}}});
  EXPECT_EQ(one.at("host").at("kernel"), "Linux 6.8");
  const std::string key = store_environment(one, root.path());
  EXPECT_EQ(store_environment(one, root.path()), key);
  EXPECT_NE(store_environment(recorded_environment({{"host", {{"cpu", "Y"}}}}), root.path()), key);
  EXPECT_EQ(find_environment(root / "4_ranks/a/measured.timeline.json", key),
            root / ("environments/" + key + ".json"));
  EXPECT_FALSE(find_environment(root / "a/measured.timeline.json", "no"));
  EXPECT_FALSE(find_environment(root / "a/measured.timeline.json", ""));
}

/// The repository's own measurements.
class Committed : public testing::Test {
 protected:
  std::vector<fs::path> files(const std::string& directory) const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator{data_directory() / directory}) {
      if (entry.path().extension() == ".json") found.push_back(entry.path());
    }
    return found;
  }
};

TEST_F(Committed, EnvironmentsNameNoComputer) {
  std::size_t environments = 0;
  for (const fs::path& file : files("reports")) {
    const std::string text = read_text(file);
    if (text.find("\"software\"") == std::string::npos || file.string().ends_with(".schema.json")) {
      continue;
    }
    ++environments;
    // Addresses, paths, PCI places, serial numbers, and whatever follows a kernel's number.
    const std::regex secret{R"(NCCL_COMM_ID|pci|0000:|GPU-|/|Linux [0-9.]*[^0-9."])"};
    std::smatch found;
    EXPECT_FALSE(std::regex_search(text, found, secret)) << file << ": " << found.str();
  }
  EXPECT_GT(environments, 3U);
}

TEST_F(Committed, EnvironmentsAreNamedByTheirContentAndReferredTo) {
  std::set<fs::path> referred;
  for (const fs::path& file : files("reports/measured")) {
    if (file.filename() != kMeasuredFile) {
      EXPECT_NE(file.filename(), "environment.json")
          << "foretrace merge --convert reports/measured";
      continue;
    }
    for (const ProcessStart& start : read_timeline(file).origin.starts) {
      const auto environment = find_environment(file, start.environment);
      ASSERT_TRUE(environment) << file;
      referred.insert(*environment);
    }
  }
  std::set<fs::path> there;
  for (const fs::path& file : files("reports/measured/environments")) {
    there.insert(file);
    EXPECT_EQ(file.stem(), environment_key(Json::parse(read_text(file))));
  }
  EXPECT_EQ(there, referred);
}

TEST_F(Committed, EnvironmentsFollowTheirSchema) {
  if (std::system(FORETRACE_PYTHON " -c 'import jsonschema' 2>/dev/null") != 0) {
    GTEST_SKIP() << FORETRACE_PYTHON " has no jsonschema (python3-jsonschema)";
  }
  std::string command = FORETRACE_PYTHON " -m jsonschema";
  for (const fs::path& file : files("reports/measured/environments")) {
    command += " -i '" + file.string() + "'";
  }
  command += " '" + (data_directory() / "reports/environment.schema.json").string() + "' 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST_F(Committed, ResultsNameScenariosAsInTheRepository) {
  for (const fs::path& file : files("reports/measured")) {
    if (file.filename() != kMeasuredFile) continue;
    const std::string scenario = read_timeline(file).origin.file;
    EXPECT_TRUE(scenario.starts_with("scenarios/")) << file << ": " << scenario;
  }
}

}  // namespace
}  // namespace foretrace::test
