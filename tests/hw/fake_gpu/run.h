// What the tests of the whole foretrace-hw on a stand-in for the GPU (fake_gpu/) share.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "reports/timeline/timeline_json.h"

namespace foretrace::hw {

struct Ended {
  int exit_code = -1;
  std::string output;
};

inline Ended run_shell(const std::string& command) {
  Ended ended;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> buffer{};
  while (fgets(buffer.data(), buffer.size(), pipe) != nullptr) ended.output += buffer.data();
  const int status = pclose(pipe);
  ended.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

inline constexpr const char* kOneProcess = R"(
buffers:
  host: {memory: pinned, size: 4KiB}
  x:    {memory: device, size: 4KiB}
threads:
  main:
    - region:
        name: step
        ops:
          - memcpy_async: {id: copy, src: host, dst: x}
          - spin: {duration: 2ms}
          - device_synchronize: {}
)";

inline constexpr const char* kTwoProcesses = R"(
processes: 2
buffers:
  mine:   {memory: device, size: 4KiB}
  theirs: {memory: device, size: 4KiB}
communicators: {world: {members: all_devices, init: rank}}
threads:
  main:
    - host_barrier: {}
    - region:
        name: exchange
        ops:
          - nccl_all_reduce: {comm: world, buffer: mine, type: float32, op: sum}
          - nccl_group:
              ops:
                - nccl_send: {comm: world, buffer: mine, type: float32, peer: 1 - process}
                - nccl_recv: {comm: world, buffer: theirs, type: float32, peer: 1 - process}
          - device_synchronize: {}
)";

class FakeGpu : public testing::Test {
 protected:
  FakeGpu()
      : directory_{std::filesystem::path{testing::TempDir()} /
                   fmt::format("fake_gpu_{}",
                               testing::UnitTest::GetInstance()->current_test_info()->name())} {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  ~FakeGpu() override { std::filesystem::remove_all(directory_); }

  std::string scenario(const std::string& name, const std::string& body) const {
    const auto file = directory_ / (name + ".yaml");
    std::ofstream{file} << "# A test.\nschema_version: 1\nname: " << name << body;
    return file.string();
  }

  /// `processes` 0: without mpirun.
  Ended measure(const std::string& arguments, int processes = 0,
                const std::string& environment = "") const {
    return run_shell(fmt::format("{} {} {} measure {} -o {}", environment, launcher(processes),
                                 FORETRACE_HW_FAKE, arguments, (directory_ / "runs").string()));
  }
  /// So many processes on each of `hosts`; each is this machine, and they share nothing but files.
  Ended on_hosts(const std::string& hosts, int processes, const std::string& arguments,
                 const std::string& environment = "") const {
    return run_shell(
        fmt::format("{} {} --mca plm_rsh_agent {} --mca routed direct --mca btl tcp,self --mca "
                    "mpi_yield_when_idle 1 "
                    "--host {} {} {} -o {}",
                    environment, launcher(processes), FORETRACE_SEVERAL_HOSTS, hosts,
                    FORETRACE_HW_FAKE, arguments, (directory_ / "runs").string()));
  }
  static std::string launcher(int processes) {
    if (processes == 0) return "";
    return fmt::format(
        "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 {} --bind-to none "
        "--oversubscribe -n {}",
        FORETRACE_MPIEXEC, processes);
  }

  std::filesystem::path run(const std::string& name) const { return directory_ / "runs" / name; }
  Timeline result(const std::string& name) const {
    return read_timeline(run(name) / kMeasuredFile);
  }

  std::filesystem::path directory_;
};

}  // namespace foretrace::hw
