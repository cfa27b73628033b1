// foretrace-hw calibrate on a stand-in for the GPU: what is measured where, what is left out, and
// that one failure does not lose the rest.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/hw/fake_gpu/run.h"

namespace foretrace::hw {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* kCopy = R"(
buffers:
  host: {memory: pinned, size: 4KiB}
  x:    {memory: device, size: 4KiB}
threads:
  main:
    - region: {name: h2d, ops: [{memcpy_async: {src: host, dst: x}}, {device_synchronize: {}}]}
)";

constexpr const char* kHost = R"(
threads:
  main:
    - region: {name: sync, ops: [{device_synchronize: {}}]}
)";

constexpr const char* kSweep = R"(
parameters: {ranks: 2, small: 64B, large: 8MiB}
tags: [nccl]
processes: $ranks
buffers: {a: {memory: device, size: $large}}
communicators: {world: {members: all_devices, init: rank}}
threads:
  main:
    - repeat:
        index: i
        times: 3
        ops:
          - host_barrier: {}
          - region:
              name: small
              ops:
                - nccl_all_reduce: {comm: world, buffer: a, size: $small * 2 ** i, type: float32, op: sum}
                - device_synchronize: {}
)";

class FakeCalibration : public FakeGpu {
 protected:
  FakeCalibration() {
    add("calibration", "copy", kCopy);
    add("calibration", "host", kHost);
    add("nccl", "sweep", kSweep);
  }

  void add(const std::string& folder, const std::string& name, const std::string& body) const {
    std::filesystem::create_directories(directory_ / folder);
    std::filesystem::rename(scenario(name, body), directory_ / folder / (name + ".yaml"));
  }

  Ended calibrate(int processes, const std::string& more = "",
                  const std::string& environment = "") const {
    return run_shell(
        fmt::format("{} {} {} calibrate --host-seconds 0 --scenarios {} -o {} --repetitions 8 {}",
                    environment, launcher(processes), FORETRACE_HW_FAKE, directory_.string(),
                    (directory_ / "runs").string(), more));
  }

  nlohmann::json step(const std::string& where) const {
    std::ifstream in{directory_ / "runs" / "calibration.json"};
    return nlohmann::json::parse(in).at("steps").value(where, nlohmann::json::object());
  }
};

TEST_F(FakeCalibration, MeasuresEveryScenarioOnTheFirstProcessesOfTheStart) {
  const Ended ended = calibrate(4);
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(result("copy").regions, SizeIs(1));
  EXPECT_THAT(result("copy").regions[0].samples_ns, SizeIs(8));
  EXPECT_THAT(result("2_ranks/sweep").regions, SizeIs(2 * 3)) << "two processes, three sizes";
  EXPECT_THAT(result("4_ranks/sweep").regions, SizeIs(4 * 3));
  EXPECT_THAT(result("4_ranks/sweep").regions[0].samples_ns, SizeIs(2)) << "a quarter of 8";
  EXPECT_EQ(result("4_ranks/sweep").origin.versions.at("parameters"),
            "large=8192KiB ranks=4 small=64B");
  EXPECT_THAT(ended.output, AllOf(HasSubstr("[4/4] 4_ranks/sweep"), HasSubstr("s left"),
                                  HasSubstr("4 scenarios measured"), HasSubstr("foretrace fit ")));
}

TEST_F(FakeCalibration, MeasuresTheHostFirstAndKeepsItsFile) {
  const std::string command =
      fmt::format("{} calibrate --host-seconds 0.01 --scenarios {} -o {} --repetitions 2",
                  FORETRACE_HW_FAKE, directory_.string(), (directory_ / "runs").string());
  const Ended ended = run_shell(command);
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  const auto text_of_host = [&] {
    std::ifstream in{directory_ / "runs" / "host.yaml"};
    return std::string{std::istreambuf_iterator<char>{in}, {}};
  };
  const std::string measured = text_of_host();
  for (const char* part : {"  host.cores: {value: ", "  host.launch_kernel: {value: ",
                           "  host.memcpy_async: {value: ", "command: \"foretrace-hw host"}) {
    EXPECT_THAT(measured, HasSubstr(part));
  }
  ASSERT_EQ(run_shell(command).exit_code, 0);
  EXPECT_EQ(text_of_host(), measured);
}

TEST_F(FakeCalibration, ARunCarriesItsScenario) {
  ASSERT_EQ(calibrate(0).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(run("copy") / "copy.yaml"));
}

TEST_F(FakeCalibration, WithoutMpirunItMeasuresWhatOneProcessCan) {
  const Ended ended = calibrate(0);
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(result("copy").regions, SizeIs(1));
  EXPECT_EQ(step("2_ranks/sweep").value("state", ""), "skipped");
  EXPECT_THAT(ended.output, HasSubstr("skipped 2_ranks/sweep: needs 2 processes: mpirun -n 4"));
}

TEST_F(FakeCalibration, AWrongResultIsRecordedAndTheRestIsMeasured) {
  const Ended ended = calibrate(2, "", "FAKE_GPU_CORRUPT_COPIES=1");
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  EXPECT_EQ(step("copy").value("state", ""), "failed");
  EXPECT_EQ(step("host").value("state", ""), "measured");
  EXPECT_EQ(step("2_ranks/sweep").value("state", ""), "measured");
  EXPECT_THAT(ended.output, HasSubstr("failed copy: wrong data"));
}

TEST_F(FakeCalibration, TheNextStartKeepsWhatIsThereAndDoesNotRepeatAFailure) {
  ASSERT_EQ(calibrate(2, "", "FAKE_GPU_CORRUPT_COPIES=1").exit_code, 1);
  const Ended again = calibrate(2);
  EXPECT_EQ(again.exit_code, 1) << again.output;
  EXPECT_THAT(again.output, AllOf(HasSubstr("host: measured before, kept"),
                                  HasSubstr("copy: failed before"), HasSubstr("--force")));
  const Ended anew = calibrate(2, "--force");
  EXPECT_EQ(anew.exit_code, 0) << anew.output;
  EXPECT_EQ(step("copy").value("state", ""), "measured");
}

TEST_F(FakeCalibration, AppendAddsAnotherStart) {
  ASSERT_EQ(calibrate(2).exit_code, 0);
  const Ended again = calibrate(2, "--append");
  ASSERT_EQ(again.exit_code, 0) << again.output;
  EXPECT_THAT(result("2_ranks/sweep").regions[0].starts, testing::ElementsAre(0, 0, 1, 1));
}

TEST_F(FakeCalibration, AProcessThatDiesEndsTheStartAndTheNextGoesOnBehindIt) {
  const Ended ended = calibrate(2, "", "FAKE_GPU_FAIL_RANK=1");
  EXPECT_NE(ended.exit_code, 0) << ended.output;
  EXPECT_EQ(step("copy").value("state", ""), "measured");
  EXPECT_EQ(step("2_ranks/sweep").value("state", ""), "running");
  EXPECT_THAT(ended.output, HasSubstr("the same command goes on with the next scenario"));
  const Ended again = calibrate(2);
  EXPECT_EQ(again.exit_code, 1) << again.output;
  EXPECT_THAT(again.output, HasSubstr("failed 2_ranks/sweep: the start ended while it was"));
}

TEST_F(FakeCalibration, OnTwoHostsItSweepsWholeNodes) {
  add("calibration", "pair", kTwoProcesses);
  const Ended ended =
      on_hosts("one:1,two:1", 2,
               "calibrate --host-seconds 0 --repetitions 8 --scenarios " + directory_.string());
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("2 nodes of 4 x"), HasSubstr("3 scenarios measured"),
                                  HasSubstr("skipped pair: needs 2 processes on one node")));
  EXPECT_THAT(result("2_ranks/sweep").regions, SizeIs(2 * 3));
  EXPECT_EQ(result("2_ranks/sweep").origin.versions.at("hosts"), "2");
}

TEST_F(FakeCalibration, RefusesMoreProcessesThanGpus) {
  const Ended ended = calibrate(5);
  EXPECT_EQ(ended.exit_code, 3) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("5 processes, but 4 GPUs: mpirun -n 4"));
}

TEST_F(FakeCalibration, RefusesAScenarioDirectoryThatIsNone) {
  const Ended ended = calibrate(0, "--scenarios " + run("nowhere").string());
  EXPECT_EQ(ended.exit_code, 2) << ended.output;
}

}  // namespace
}  // namespace foretrace::hw
