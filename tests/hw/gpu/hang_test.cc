// Programs that hang, ended by the watchdog of the real foretrace-hw.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "reports/timeline/timeline_json.h"
#include "scenarios/base/text/data_directory.h"
#include "tests/hw/gpu/gpu.h"

namespace foretrace::hw {
namespace {

using testing::Contains;
using testing::HasSubstr;

struct HangEnded {
  int exit_code = -1;
  std::string output;
};

HangEnded measure(const std::string& scenario, const std::filesystem::path& runs) {
  const std::string command = fmt::format(
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 {} --bind-to none -n 2 {} measure "
      "{}/scenarios/hangs/{} -o {} --force --timeout 5s 2>&1",
      FORETRACE_MPIEXEC, FORETRACE_HW_BINARY, data_directory().string(), scenario, runs.string());
  HangEnded ended;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> buffer{};
  while (fgets(buffer.data(), buffer.size(), pipe) != nullptr) ended.output += buffer.data();
  const int status = pclose(pipe);
  ended.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

class HangOnGpu : public testing::TestWithParam<const char*> {};

TEST_P(HangOnGpu, EndsWithTheReceiveThatNobodySendsTo) {
  FORETRACE_NEEDS_GPUS(2);
  const std::string name = GetParam();
  const auto runs = std::filesystem::path{testing::TempDir()} / ("hang_" + name);
  const HangEnded ended = measure(name + ".yaml", runs);
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  const Timeline result = read_timeline(runs / name / kMeasuredFile);
  EXPECT_EQ(result.outcome.kind, Outcome::Kind::Timeout);
  EXPECT_THAT(result.outcome.explanation,
              Contains(testing::AllOf(HasSubstr("process 1, thread rank_1"),
                                      HasSubstr("nccl_recv from rank 0 never completed"))))
      << ended.output;
  std::filesystem::remove_all(runs);
}

INSTANTIATE_TEST_SUITE_P(Shipped, HangOnGpu,
                         testing::Values("recv_without_send_warm", "recv_without_send_cold"),
                         [](const auto& parameter) { return std::string{parameter.param}; });

}  // namespace
}  // namespace foretrace::hw
