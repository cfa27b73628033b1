// The whole of foretrace-hw measure, on a stand-in for the GPU (fake_gpu/): processes, passes,
// files, resuming, hangs and failures.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "reports/timeline_json.h"

namespace foretrace::hw {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

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

constexpr const char* kOneProcess = R"(
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

constexpr const char* kTwoProcesses = R"(
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
    const std::string launcher =
        processes == 0 ? ""
                       : fmt::format(
                             "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 {} "
                             "--bind-to none --oversubscribe -n {}",
                             FORETRACE_MPIEXEC, processes);
    return run_shell(fmt::format("{} {} {} measure {} -o {}", environment, launcher,
                                 FORETRACE_HW_FAKE, arguments, (directory_ / "runs").string()));
  }

  std::filesystem::path run(const std::string& name) const { return directory_ / "runs" / name; }
  Timeline result(const std::string& name) const {
    return read_timeline(run(name) / kMeasuredFile);
  }

  std::filesystem::path directory_;
};

TEST_F(FakeGpu, MeasuresRegionsAndTracesHostCalls) {
  const Ended ended = measure(scenario("one", kOneProcess) + " --repetitions 7 --start-label here");
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr(run("one").string()));
  const Timeline timeline = result("one");
  EXPECT_TRUE(timeline.origin.measured);
  EXPECT_EQ(timeline.outcome.kind, Outcome::Kind::Completed);
  ASSERT_THAT(timeline.regions, SizeIs(1));
  EXPECT_THAT(timeline.regions[0].samples_ns,
              AllOf(SizeIs(7), Each(testing::Ge(std::int64_t{2'000'000}))));
  EXPECT_THAT(timeline.regions[0].starts, Each(0U));
  EXPECT_GE(timeline.regions[0].traced_ns.value_or(0), 2'000'000);
  EXPECT_THAT(timeline.spans, SizeIs(3)) << "the host's side of three calls";
  for (const Span& span : timeline.spans) EXPECT_GE(span.begin_ns, 0);
  EXPECT_THAT(timeline.origin.versions.at("data_checked"), HasSubstr("1 of 1 results"));
  std::ifstream in{run("one") / "environment.json"};
  EXPECT_EQ(nlohmann::json::parse(in).at("starts").at(0).at("label"), "here");
  EXPECT_FALSE(std::filesystem::exists(run("one") / "measured.partial.json"));
}

TEST_F(FakeGpu, TwoProcessesBothCountAndAnExtraOneIdles) {
  const Ended ended = measure(scenario("two", kTwoProcesses) + " --repetitions 4", 3);
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  const Timeline timeline = result("two");
  ASSERT_THAT(timeline.regions, SizeIs(2));
  EXPECT_EQ(timeline.regions[0].process, 0U);
  EXPECT_EQ(timeline.regions[1].process, 1U);
  for (const RegionSamples& row : timeline.regions) EXPECT_THAT(row.samples_ns, SizeIs(4));
  // all_reduce; of the exchange what came from the other: two results in each process.
  EXPECT_THAT(timeline.origin.versions.at("data_checked"), HasSubstr("4 of 4 results"));
  EXPECT_THAT(timeline.lanes, SizeIs(2));
}

TEST_F(FakeGpu, SeveralFilesInOneStart) {
  const Ended ended = measure(
      scenario("one", kOneProcess) + " " + scenario("two", kTwoProcesses) + " --repetitions 2", 2);
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(result("one").regions, SizeIs(1));
  EXPECT_THAT(result("two").regions, SizeIs(2));
}

TEST_F(FakeGpu, AResultThatIsThereIsKeptUnlessToldOtherwise) {
  const std::string file = scenario("one", kOneProcess);
  ASSERT_EQ(measure(file + " --repetitions 2").exit_code, 0);
  const Ended again = measure(file + " --repetitions 2");
  EXPECT_EQ(again.exit_code, 2) << again.output;
  EXPECT_THAT(again.output, AllOf(HasSubstr("--force"), HasSubstr("--append")));
  ASSERT_EQ(measure(file + " --repetitions 3 --append").exit_code, 0);
  EXPECT_THAT(result("one").regions.at(0).starts, ElementsAre(0U, 0U, 1U, 1U, 1U));
  EXPECT_THAT(result("one").spans, SizeIs(3)) << "the first start's trace stays";
  ASSERT_EQ(measure(file + " --repetitions 1 --force").exit_code, 0);
  EXPECT_THAT(result("one").regions.at(0).starts, ElementsAre(0U));
}

TEST_F(FakeGpu, HostThreadsOfOneProcessRunTogether) {
  const Ended ended = measure(scenario("threads", R"(
signals: {ready: {}}
threads:
  main:
    - host_barrier: {}
    - region: {name: wait, ops: [{host_wait: {signal: ready}}]}
  worker:
    - host_barrier: {}
    - host_compute: {duration: 3ms}
    - host_signal: {signal: ready}
)") + " --repetitions 5");
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  const Timeline timeline = result("threads");
  ASSERT_THAT(timeline.regions, SizeIs(1));
  // On a busy machine either thread may come late to the region: that the waiting is seen at all.
  EXPECT_THAT(timeline.regions[0].samples_ns, SizeIs(5));
  EXPECT_THAT(timeline.regions[0].samples_ns, Contains(testing::Gt(std::int64_t{1'000'000})));
}

TEST_F(FakeGpu, WrongDataIsAnErrorAndNoTiming) {
  const Ended ended = measure(scenario("one", kOneProcess), 0, "FAKE_GPU_CORRUPT_COPIES=1");
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("memcpy_async: wrong data"), HasSubstr("one.yaml:")));
  const Timeline timeline = result("one");
  EXPECT_EQ(timeline.outcome.kind, Outcome::Kind::WrongData);
  EXPECT_THAT(timeline.regions, SizeIs(0));
}

TEST_F(FakeGpu, AHangIsExplainedByAllProcessesAndEnded) {
  const Ended ended = measure(scenario("hang", R"(
processes: 2
warmup: 0
buffers: {x: {memory: device, size: 4KiB}}
communicators: {world: {members: all_devices, init: rank}}
threads:
  rank_0:
    process: 0
    ops:
      - nccl_send: {comm: world, buffer: x, type: float32, peer: 1}
      - device_synchronize: {}
  rank_1:
    process: 1
    ops:
      - nccl_recv: {comm: world, buffer: x, type: float32, peer: 0}
      - nccl_recv: {id: never_sent, comm: world, buffer: x, type: float32, peer: 0}
      - host_compute: {duration: 20us}
      - device_synchronize: {}
)") + " --timeout 2s",
                              2);
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  const Timeline timeline = result("hang");
  EXPECT_EQ(timeline.outcome.kind, Outcome::Kind::Timeout);
  // Line 18 of the file is the second receive.
  EXPECT_THAT(timeline.outcome.explanation,
              Contains("process 1, thread rank_1, hang.yaml:18: nccl_recv from rank 0 never "
                       "completed: rank 0 has no matching nccl_send"));
  EXPECT_THAT(timeline.outcome.explanation,
              Contains(HasSubstr("device_synchronize never returned")));
  EXPECT_THAT(ended.output, HasSubstr("the run hangs"));
  EXPECT_FALSE(std::filesystem::exists(run("hang") / "hang.0.json"));
  EXPECT_FALSE(std::filesystem::exists(run("hang") / "hang.1.json"));
}

TEST_F(FakeGpu, HostThreadsThatWaitForEachOtherAreAHang) {
  const Ended ended = measure(scenario("signals", R"(
warmup: 0
signals: {never: {}}
threads:
  main:
    - host_wait: {signal: never}
  other:
    - host_compute: {duration: 1us}
)") + " --timeout 1s");
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  EXPECT_THAT(result("signals").outcome.explanation,
              Contains(HasSubstr("host_wait never returned")));
}

TEST_F(FakeGpu, ADeviceThatFailsInOneProcessEndsAll) {
  const Ended ended = measure(scenario("two", kTwoProcesses), 2, "FAKE_GPU_FAIL_RANK=1");
  EXPECT_EQ(ended.exit_code, 4) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("process 1"));
}

}  // namespace
}  // namespace foretrace::hw
