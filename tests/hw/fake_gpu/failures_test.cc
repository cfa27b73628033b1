// Runs that go wrong, on a stand-in for the GPU (fake_gpu/): hangs, faults, failures, wrong data.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/hw/fake_gpu/run.h"

namespace foretrace::hw {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

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

}  // namespace
}  // namespace foretrace::hw
