// A program that loses its context, by the real foretrace-hw in a process of its own.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "reports/timeline/timeline_json.h"
#include "tests/hw/gpu/gpu.h"

namespace foretrace::hw {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

struct Ended {
  int exit_code = -1;
  std::string output;
};

Ended run_shell(const std::string& command) {
  Ended ended;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> buffer{};
  while (fgets(buffer.data(), buffer.size(), pipe) != nullptr) ended.output += buffer.data();
  const int status = pclose(pipe);
  ended.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

/// Measures the scenario with this body in a directory of its own, which the caller removes.
std::pair<Ended, Timeline> measure(const std::filesystem::path& directory,
                                   const std::string& body) {
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  const auto file = directory / "fault.yaml";
  std::ofstream{file} << "# A test.\nschema_version: 1\nname: fault" << body;
  const Ended ended =
      run_shell(fmt::format("{} measure {} -o {} --timeout 10s", FORETRACE_HW_BINARY, file.string(),
                            (directory / "runs").string()));
  const auto result = directory / "runs" / "fault" / kMeasuredFile;
  if (!std::filesystem::exists(result)) return {ended, {}};
  return {ended, read_timeline(result)};
}

TEST(FaultOnGpu, FailsInTheCallThatReportsIt) {
  FORETRACE_NEEDS_GPUS(1);
  const auto directory = std::filesystem::path{testing::TempDir()} / "fault_at_synchronize";
  const auto [ended, timeline] = measure(directory, R"(
warmup: 0
streams: {bad: {flags: non_blocking}, good: {flags: non_blocking}}
threads:
  main:
    - fault: {stream: bad}
    - spin: {stream: good, duration: 1us}
    - device_synchronize: {}
)");
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  EXPECT_EQ(timeline.outcome.kind, Outcome::Kind::Failed) << ended.output;
  EXPECT_THAT(timeline.outcome.explanation,
              ElementsAre(AllOf(HasSubstr("process 0, thread main, fault.yaml:"),
                                HasSubstr("an illegal memory access"), HasSubstr("surfaced here"))))
      << ended.output;
  std::filesystem::remove_all(directory);
}

TEST(FaultOnGpu, FailsInAWarmProgramWithLibrariesToo) {
  FORETRACE_NEEDS_GPUS(1);
  const auto directory = std::filesystem::path{testing::TempDir()} / "fault_in_a_library";
  const auto [ended, timeline] = measure(directory, R"(
buffers: {x: {memory: device, size: 1MiB}}
communicators: {world: {members: all_devices, init: rank}}
threads:
  main:
    - fault: {}
    - host_compute: {duration: 20ms}
    - nccl_all_reduce: {comm: world, buffer: x, type: float32, op: sum}
    - device_synchronize: {}
)");
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  EXPECT_THAT(timeline.outcome.explanation,
              ElementsAre(AllOf(HasSubstr("process 0, thread main"), HasSubstr("surfaced here"))))
      << ended.output;
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace foretrace::hw
