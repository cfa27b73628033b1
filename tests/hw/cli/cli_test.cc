// foretrace-hw as a user meets it where there is no GPU, too few processes, or bad input.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "scenarios/base/text/data_directory.h"

namespace foretrace::hw {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Ended {
  int exit_code = -1;
  std::string output;  ///< stdout and stderr
};

Ended run_shell(const std::string& command) {
  Ended result;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> buffer{};
  while (fgets(buffer.data(), buffer.size(), pipe) != nullptr) result.output += buffer.data();
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

/// CUDA finds no GPU, whatever the machine has.
std::string hw(const std::string& arguments, const std::string& launcher = "") {
  return fmt::format("CUDA_VISIBLE_DEVICES= {} {} {}", launcher, FORETRACE_HW_BINARY, arguments);
}

std::string mpirun(int processes) {
  return fmt::format(
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 {} --oversubscribe -n {}",
      FORETRACE_MPIEXEC, processes);
}

std::string scenario(const std::string& path) {
  return data_directory().string() + "/scenarios/" + path;
}

class HarnessCommandLine : public testing::Test {
 protected:
  HarnessCommandLine()
      : runs_{std::filesystem::path{testing::TempDir()} /
              fmt::format("hw_cli_{}",
                          testing::UnitTest::GetInstance()->current_test_info()->name())} {
    std::filesystem::remove_all(runs_);
  }
  ~HarnessCommandLine() override { std::filesystem::remove_all(runs_); }
  std::string output() const { return " -o " + runs_.string(); }

  std::filesystem::path runs_;
};

TEST_F(HarnessCommandLine, SaysThatThisMachineHasNoGpu) {
  const Ended result =
      run_shell(hw("measure " + scenario("examples/prefetch_two_streams.yaml") + output()));
  EXPECT_EQ(result.exit_code, 3) << result.output;
  EXPECT_THAT(result.output, HasSubstr("no GPU can be used here"));
  EXPECT_THAT(result.output, HasSubstr("doctor"));
  EXPECT_FALSE(std::filesystem::exists(runs_)) << "nothing was measured, nothing is written";
}

TEST_F(HarnessCommandLine, MeasuresTheHostWithoutAGpu) {
  const Ended result = run_shell(hw("host --seconds 0 -o " + runs_.string()));
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("no GPU"));
  std::ifstream file{runs_};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  for (const char* part : {"schema_version: 1", "host.core_memory_bandwidth: {value: ",
                           "host.touch_bandwidth: {value: ", "source: measured, spread: "}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, Not(HasSubstr("host.launch_kernel")));
}

TEST_F(HarnessCommandLine, SaysBeforeItMeasuresThatTheHostsFileCannotBeWritten) {
  const Ended result = run_shell(hw("host --seconds 60 -o /nowhere/host.yaml"));
  EXPECT_EQ(result.exit_code, 4) << result.output;
  EXPECT_THAT(result.output, HasSubstr("/nowhere"));
}

TEST_F(HarnessCommandLine, SaysSoOnceForAllProcesses) {
  const Ended result =
      run_shell(hw("measure " + scenario("collectives/all_reduce.yaml") + output(), mpirun(2)));
  EXPECT_EQ(result.exit_code, 3) << result.output;
  const auto first = result.output.find("no GPU can be used here");
  ASSERT_NE(first, std::string::npos) << result.output;
  EXPECT_EQ(result.output.find("no GPU can be used here", first + 1), std::string::npos);
}

TEST_F(HarnessCommandLine, SaysHowManyProcessesAreNeeded) {
  const Ended result =
      run_shell(hw("measure " + scenario("collectives/all_reduce.yaml") + output()));
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr("needs 2 processes, this start has 1"));
  EXPECT_THAT(result.output, HasSubstr("mpirun -n 2"));
}

TEST_F(HarnessCommandLine, RefusesAMissingFile) {
  const Ended result = run_shell(hw("measure nosuch.yaml" + output()));
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr("nosuch.yaml"));
}

TEST_F(HarnessCommandLine, RefusesATimeoutWithoutUnit) {
  const Ended result = run_shell(
      hw("measure " + scenario("examples/prefetch_two_streams.yaml") + output() + " --timeout 30"));
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr("30s"));
}

TEST_F(HarnessCommandLine, RefusesAColdProgramBesideAnother) {
  const Ended result = run_shell(hw("measure " + scenario("hangs/recv_without_send_cold.yaml") +
                                        " " + scenario("collectives/all_reduce.yaml") + output(),
                                    mpirun(2)));
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr("a start of its own"));
}

TEST_F(HarnessCommandLine, SuggestsTheFlagThatWasMeant) {
  const Ended result = run_shell(hw("measure x.yaml" + output() + " --repetition 3"));
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_THAT(result.output, HasSubstr("--repetitions"));
}

TEST_F(HarnessCommandLine, DoctorSaysWhatIsMissing) {
  const Ended text = run_shell(hw("doctor"));
  EXPECT_EQ(text.exit_code, 3) << text.output;
  EXPECT_THAT(text.output, HasSubstr("MISSING"));
  EXPECT_THAT(text.output, HasSubstr("measure cannot work here"));
  EXPECT_THAT(text.output, HasSubstr("NCCL"));
  const Ended json = run_shell(hw("doctor --format json"));
  EXPECT_EQ(json.exit_code, 3);
  EXPECT_THAT(json.output, HasSubstr("\"can_measure\": false"));
}

TEST_F(HarnessCommandLine, ShowsAnExampleFirst) {
  for (const char* command : {"measure", "calibrate", "doctor"}) {
    const Ended result = run_shell(hw(std::string{command} + " --help"));
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.output, testing::StartsWith("Example:"));
  }
  EXPECT_EQ(run_shell(hw("--version")).exit_code, 0);
}

}  // namespace
}  // namespace foretrace::hw
