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

/// The spans of operations of this kind beyond the host's calls.
std::vector<Span> device_spans(const Timeline& timeline, const std::string& kind) {
  std::vector<Span> result;
  for (const Span& span : timeline.spans) {
    if (span.part > 0 && timeline.ops[span.op].kind == kind) result.push_back(span);
  }
  return result;
}

TEST_F(FakeGpu, AHostFunctionRunsInItsStreamAndReleasesAHostThread) {
  const Ended ended = measure(scenario("function", R"(
streams: {s: {flags: non_blocking}}
signals: {go: {}, done: {}}
threads:
  main:
    - host_func: {stream: s, wait: go, duration: 1ms, signal: done}
    - host_signal: {signal: go}
    - host_wait: {id: wait, signal: done}
)") + " --repetitions 3 --timeout 5s");
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  const Timeline timeline = result("function");
  const auto functions = device_spans(timeline, "host_func");
  ASSERT_THAT(functions, SizeIs(1));
  EXPECT_EQ(timeline.lanes[functions[0].lane].name, "s");
  EXPECT_EQ(timeline.lanes[functions[0].lane].kind, LaneKind::Stream);
  EXPECT_GE(functions[0].end_ns - functions[0].begin_ns, 1'000'000);
}

TEST_F(FakeGpu, AGraphRunsAtEveryLaunchAndItsFunctionsBelongToTheLaunch) {
  const Ended ended = measure(scenario("graph", R"(
streams: {s: {flags: non_blocking}, t: {flags: non_blocking}}
graphs: {g: {}}
buffers: {x: {memory: device, size: 4KiB}, y: {memory: device, size: 4KiB}}
threads:
  main:
    - graph_capture:
        graph: g
        stream: s
        ops:
          - elementwise: {stream: s, srcs: [x, y], dst: x}
          - host_func: {stream: s, duration: 1ms}
    - repeat:
        times: 3
        ops:
          - graph_launch: {graph: g, stream: t}
    - device_synchronize: {}
)") + " --repetitions 3");
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  const Timeline timeline = result("graph");
  EXPECT_THAT(timeline.origin.versions.at("data_checked"), HasSubstr("3 of 3 results"));
  EXPECT_THAT(device_spans(timeline, "host_func"), SizeIs(0));
  const auto launched = device_spans(timeline, "graph_launch");
  ASSERT_THAT(launched, SizeIs(3));
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(launched[i].instance, i);
    EXPECT_EQ(launched[i].part, 1);
    EXPECT_EQ(timeline.lanes[launched[i].lane].name, "t");
  }
}

TEST_F(FakeGpu, ALaunchOfAGraphThatWasNotCapturedFails) {
  const Ended ended = measure(scenario("graph", R"(
warmup: 0
streams: {s: {flags: non_blocking}}
graphs: {g: {count: 2}}
threads:
  main:
    - graph_capture: {graph: g(0), stream: s, ops: [{spin: {stream: s, duration: 1us}}]}
    - graph_launch: {graph: g(1), stream: s}
)") + " --no-check");
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  EXPECT_THAT(result("graph").outcome.explanation,
              Contains("process 0, thread main, graph.yaml:10: graph_launch: graph g(1) was not "
                       "captured before"));
}

constexpr const char* kFault = R"(
streams: {s: {flags: non_blocking}}
threads:
  main:
    - region: {name: before, ops: [{host_compute: {duration: 1us}}]}
    - fault: {stream: s}
    - host_compute: {duration: 1us}
    - event_query: {event: e}
    - device_synchronize: {}
events: {e: {}}
)";

TEST_F(FakeGpu, AFaultIsTheFailureOfTheCallThatReportsIt) {
  const Ended ended = measure(scenario("fault", kFault));
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  const Timeline timeline = result("fault");
  EXPECT_EQ(timeline.outcome.kind, Outcome::Kind::Failed);
  EXPECT_THAT(timeline.outcome.explanation,
              ElementsAre("process 0, thread main, fault.yaml:10: event_query: an illegal memory "
                          "access was encountered (cudaErrorIllegalAddress), surfaced here"));
}

TEST_F(FakeGpu, AFaultThatNoCallReportsFailsAtTheEnd) {
  const Ended ended = measure(scenario("fault", R"(
warmup: 0
threads:
  main:
    - fault: {}
)"));
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  EXPECT_THAT(result("fault").outcome.explanation,
              ElementsAre("process 0, after its last operation: an illegal memory access was "
                          "encountered (cudaErrorIllegalAddress), surfaced here"));
}

TEST_F(FakeGpu, AFaultIsMeasuredInAStartOfItsOwn) {
  const Ended ended = measure(scenario("fault", kFault) + " " + scenario("one", kOneProcess));
  EXPECT_EQ(ended.exit_code, 2) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("fault.yaml:8: a fault ends the process"));
}

TEST_F(FakeGpu, AFailureOfAnotherRankReachesTheResult) {
  // Process 0 waits for ever for process 1, which has failed.
  const Ended ended = measure(scenario("late", R"(
processes: 2
streams: {s: {flags: non_blocking}}
events: {e: {}}
signals: {never: {}}
threads:
  zero: {process: 0, ops: [{host_barrier: {}}]}
  one:
    process: 1
    ops:
      - host_func: {stream: s, wait: never}
      - event_record: {event: e, stream: s}
      - event_wait_for: {event: e, timeout: 10ms, poll: 1ms}
      - host_barrier: {}
)") + " --timeout 20s",
                              2);
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  const Timeline timeline = result("late");
  EXPECT_EQ(timeline.outcome.kind, Outcome::Kind::Failed);
  EXPECT_THAT(timeline.outcome.explanation,
              ElementsAre(AllOf(HasSubstr("process 1, thread one, late.yaml:15: event_wait_for"),
                                HasSubstr("did not complete within"))));
  EXPECT_THAT(timeline.origin.machine, HasSubstr("2 x"));
  EXPECT_FALSE(std::filesystem::exists(run("late") / "measured.partial.json"));
}

TEST_F(FakeGpu, AFaultInAnotherRankReachesTheResult) {
  const Ended ended = measure(scenario("fault", R"(
processes: 2
warmup: 0
threads:
  zero: {process: 0, ops: [{host_barrier: {}}]}
  one: {process: 1, ops: [{fault: {}}, {device_synchronize: {}}, {host_barrier: {}}]}
)"),
                              2);
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  EXPECT_THAT(result("fault").outcome.explanation,
              ElementsAre(HasSubstr("process 1, thread one, fault.yaml:8: device_synchronize: an "
                                    "illegal memory access")));
}

TEST_F(FakeGpu, AGroupThatIsNeverClosedIsAHang) {
  const Ended ended = measure(scenario("group", R"(
processes: 2
warmup: 0
signals: {never: {}}
buffers: {x: {memory: device, size: 4KiB}}
communicators: {world: {members: all_devices, init: rank}}
threads:
  main:
    - nccl_group:
        ops:
          - nccl_all_reduce: {comm: world, buffer: x, type: float32, op: sum}
          - host_wait: {signal: never}
)") + " --timeout 1s",
                              2);
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  EXPECT_THAT(result("group").outcome.explanation,
              Contains("process 1, thread main, group.yaml:14: host_wait never returned; the "
                       "nccl_group opened at line 11 was never closed"));
}

TEST_F(FakeGpu, AHostFunctionThatIsNeverReleasedIsAHang) {
  const Ended ended = measure(scenario("function", R"(
warmup: 0
streams: {s: {flags: non_blocking}}
signals: {never: {}}
threads:
  main:
    - host_func: {stream: s, wait: never}
    - stream_synchronize: {stream: s}
)") + " --timeout 1s");
  EXPECT_EQ(ended.exit_code, 1) << ended.output;
  EXPECT_THAT(result("function").outcome.explanation,
              AllOf(Contains("process 0, thread main, function.yaml:9: host_func on s waits for "
                             "the signal never, which never came"),
                    Contains(HasSubstr("stream_synchronize never returned"))));
}

TEST_F(FakeGpu, ACommunicatorIsCreatedOnceIfNeeded) {
  const Ended ended = measure(scenario("lazy", R"(
processes: 2
buffers: {x: {memory: device, size: 4KiB}}
process_groups: {world: {ranks: all, init: lazy}}
threads:
  main:
    - repeat:
        times: 3
        ops:
          - all_reduce: {group: world, buffer: x, type: float32}
    - device_synchronize: {}
)") + " --repetitions 2",
                              2);
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(result("lazy").origin.versions.at("data_checked"), HasSubstr("6 of 6 results"));
}

TEST_F(FakeGpu, TheEnvironmentIsSetBeforeTheFirstCudaCall) {
  const std::string body =
      "\nenvironment: {CUDA_DEVICE_MAX_CONNECTIONS: 1}\n"
      "threads: {main: [{spin: {duration: 1us}}]}\n";
  const std::string file = scenario("connections", body);
  const std::string arguments = file + " --repetitions 1";
  EXPECT_EQ(measure(arguments, 0, "FAKE_GPU_NEEDS_CONNECTIONS=2").exit_code, 3);
  EXPECT_EQ(measure(arguments, 0, "FAKE_GPU_NEEDS_CONNECTIONS=1").exit_code, 0);
}

TEST_F(FakeGpu, PrioritiesStayWithinTheDevicesRange) {
  const Ended ended = measure(scenario("priority", R"(
streams: {urgent: {flags: non_blocking, priority: -100}, idle: {priority: 100}}
threads:
  main:
    - spin: {stream: urgent, duration: 1us}
    - spin: {stream: idle, duration: 1us}
)") + " --repetitions 1");
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
}

}  // namespace
}  // namespace foretrace::hw
