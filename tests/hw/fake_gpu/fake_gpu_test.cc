// The whole of foretrace-hw measure, on a stand-in for the GPU (fake_gpu/): processes, passes,
// files, resuming.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/hw/fake_gpu/run.h"

namespace foretrace::hw {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

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
  ASSERT_THAT(timeline.origin.starts, SizeIs(1));
  EXPECT_EQ(timeline.origin.starts[0].label, "here");
  EXPECT_THAT(timeline.origin.starts[0].launch_ns, ElementsAre(testing::Gt(0)))
      << "the host's speed beside the repetitions";
  EXPECT_TRUE(std::filesystem::is_regular_file(run("one").parent_path() / "environments" /
                                               (timeline.origin.starts[0].environment + ".json")));
  EXPECT_FALSE(std::filesystem::exists(run("one") / "environment.json"));
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
  ASSERT_THAT(timeline.origin.starts, SizeIs(1));
  EXPECT_THAT(timeline.origin.starts[0].launch_ns, SizeIs(2)) << "of each process";
  // all_reduce; of the exchange what came from the other: two results in each process.
  EXPECT_THAT(timeline.origin.versions.at("data_checked"), HasSubstr("4 of 4 results"));
  EXPECT_THAT(timeline.lanes, SizeIs(2));
}

TEST_F(FakeGpu, AScenarioOfPartsIsSentToAllProcesses) {
  std::ofstream{directory_ / "wait.yml"} << "ops: [{device_synchronize: {}}]";
  const Ended ended = measure(scenario("parts", R"(
processes: 2
threads:
  main: [{region: {name: wait, ops: [{include: {file: wait.yml}}]}}]
)") + " --repetitions 2",
                              2);
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(result("parts").regions, SizeIs(2));
  EXPECT_EQ(result("parts").ops.at(1).line, 6) << "where the include stands";
}

TEST_F(FakeGpu, AStepOfAModelRunsWithoutItsFrameworkAndTheResultSaysSo) {
  const Ended ended = measure(scenario("step", R"(
threads:
  main:
    - region:
        name: step
        ops:
          - repeat:
              times: 3
              ops:
                - framework_call: {work: forward, count: 2}
                - library_kernel: {kernel: softmax, size: 4KiB}
          - device_synchronize: {}
)") + " --repetitions 2");
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_THAT(result("step").regions, SizeIs(1));
  EXPECT_EQ(result("step").origin.versions.at("not_run_framework_call"),
            "3 a pass: there is no framework here");
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

TEST_F(FakeGpu, OperatorsOnTheCpuAndReadsOfFilesAreMeasured) {
  const Ended ended = measure(scenario("cpu", R"(
buffers: {batch: {memory: pinned, size: 100KB}}
threads:
  main:
    - region: {name: compute, ops: [host_parallel: {id: work, flops: 1000000, threads: 2}]}
    - region: {name: read, ops: [read_file: {id: file, dst: batch}]}
)") + " --repetitions 3");
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  const Timeline timeline = result("cpu");
  ASSERT_THAT(timeline.regions, SizeIs(2));
  for (const RegionSamples& region : timeline.regions) {
    EXPECT_THAT(region.samples_ns, SizeIs(3));
    EXPECT_THAT(region.samples_ns, Each(testing::Gt(std::int64_t{1'000}))) << region.name;
  }
  EXPECT_THAT(timeline.spans, SizeIs(2)) << "a host call each";
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

TEST_F(FakeGpu, GivesBackWhatAPassLeavesRegisteredBeforeItsMemory) {
  const Ended ended = measure(scenario("registered", R"(
processes: 2
buffers: {x: {memory: nccl, size: 4KiB}, y: {memory: nccl, size: 4KiB}}
communicators: {world: {members: all_devices, init: rank}}
threads:
  main:
    - malloc: {buffer: y}
    - nccl_comm_register: {comm: world, buffer: x}
    - nccl_comm_register: {comm: world, buffer: x}
    - nccl_comm_register: {comm: world, buffer: y}
    - nccl_comm_deregister: {comm: world, buffer: x}
    - region: {name: r, ops: [nccl_all_reduce: {comm: world, send_buffer: x, recv_buffer: y, type: float32}, device_synchronize: {}]}
)") + " --repetitions 3",
                              2);
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  const Timeline timeline = result("registered");
  EXPECT_EQ(timeline.outcome.kind, Outcome::Kind::Completed);
  EXPECT_THAT(timeline.origin.versions.at("data_checked"), HasSubstr("2 of 2 results"));
}

}  // namespace
}  // namespace foretrace::hw
