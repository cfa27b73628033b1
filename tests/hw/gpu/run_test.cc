// The rules of scenarios/program/ops.h, measured on a real GPU from the spans of a traced pass.
#include <gmock/gmock.h>

#include "tests/hw/gpu/gpu.h"
#include "tests/hw/gpu/trace.h"
#include "tests/hw/programs.h"

namespace foretrace::hw {
namespace {

using testing::SizeIs;

TEST(PassOnGpu, TimesItsRegions) {
  const Program program = program_of(R"(
threads:
  main:
    - region:
        name: spin
        ops:
          - spin: {duration: 2ms}
          - device_synchronize: {}
)");
  FORETRACE_NEEDS_GPUS(1);
  TestRun run{program};
  for (int i = 0; i < 3; ++i) run->pass();
  ASSERT_THAT(run->region_times(), SizeIs(1));
  EXPECT_GE(run->region_times()[0].ns, 2'000'000 * 98 / 100);
  EXPECT_LE(run->region_times()[0].ns, 2'000'000 * 105 / 100);
}

TEST(PassOnGpu, LaunchReturnsBeforeTheKernelEnds) {
  const Program program = program_of(R"(
streams: {s: {flags: non_blocking}}
threads:
  main:
    - spin: {id: kernel, stream: s, duration: 2ms}
    - stream_synchronize: {id: wait, stream: s}
)");
  FORETRACE_NEEDS_GPUS(1);
  const Timeline timeline = trace(program);
  const Span launch = span_of(timeline, program, "kernel", 0);
  const Span kernel = span_of(timeline, program, "kernel", 1);
  const Span wait = span_of(timeline, program, "wait", 0);
  EXPECT_LT(launch.end_ns - launch.begin_ns, 1'000'000);
  EXPECT_GE(kernel.begin_ns, launch.begin_ns);
  EXPECT_NEAR(static_cast<double>(kernel.end_ns - kernel.begin_ns), 2e6, 4e4);
  EXPECT_GE(wait.end_ns, kernel.end_ns - 5000);  // the clocks' error
  EXPECT_EQ(timeline.lanes[kernel.lane].name, "s");
}

TEST(PassOnGpu, StreamWaitEventHoldsTheStreamUntilTheEventCompletes) {
  const Program program = program_of(R"(
streams: {a: {flags: non_blocking}, b: {flags: non_blocking}}
events: {done: {}}
threads:
  main:
    - spin: {id: first, stream: a, duration: 1ms}
    - event_record: {event: done, stream: a}
    - stream_wait_event: {id: wait, stream: b, event: done}
    - spin: {id: second, stream: b, duration: 100us}
    - device_synchronize: {}
)");
  FORETRACE_NEEDS_GPUS(1);
  const Timeline timeline = trace(program);
  EXPECT_GE(span_of(timeline, program, "second", 1).begin_ns,
            span_of(timeline, program, "first", 1).end_ns - 1000);
  const Span wait = span_of(timeline, program, "wait", 0);
  EXPECT_LT(wait.end_ns - wait.begin_ns, 500'000) << "the host does not wait";
}

TEST(PassOnGpu, AnEventNeverRecordedIsCompleteInEveryPass) {
  const Program program = program_of(R"(
streams: {a: {flags: non_blocking}}
events: {done: {}}
threads:
  main:
    - region:
        name: wait
        ops:
          - event_synchronize: {event: done}
    - spin: {stream: a, duration: 5ms}
    - event_record: {event: done, stream: a}
    - device_synchronize: {}
)");
  FORETRACE_NEEDS_GPUS(1);
  TestRun run{program};
  for (int pass = 0; pass < 3; ++pass) {
    run->pass();
    EXPECT_LT(run->region_times().at(0).ns, 1'000'000) << "pass " << pass;
  }
}

TEST(PassOnGpu, CopiesCrossPcieOnTheirStreamsLane) {
  const Program program = program_of(R"(
streams: {s: {flags: non_blocking}}
buffers:
  host: {memory: pinned, size: 64MiB, contents: random}
  x:    {memory: device, size: 64MiB}
threads:
  main:
    - memcpy_async: {id: h2d, stream: s, src: host, dst: x}
    - stream_synchronize: {stream: s}
    - memcpy: {id: d2h, src: x, dst: host}
)");
  FORETRACE_NEEDS_GPUS(1);
  const Timeline timeline = trace(program);
  const Span h2d = span_of(timeline, program, "h2d", 1);
  EXPECT_EQ(timeline.lanes[h2d.lane].name, "s");
  // 64 MiB: between 5 GB/s (a slow link) and 450 GB/s (the fastest CPU-GPU link there is).
  EXPECT_GT(h2d.end_ns - h2d.begin_ns, 67'108'864 / 450);
  EXPECT_LT(h2d.end_ns - h2d.begin_ns, 67'108'864 / 5);
  const Span d2h = span_of(timeline, program, "d2h", 1);
  EXPECT_EQ(timeline.lanes[d2h.lane].name, "default(0)");
  const Span call = span_of(timeline, program, "d2h", 0);
  EXPECT_GE(call.end_ns, d2h.end_ns - 5000) << "memcpy returns when the copy has ended";
}

TEST(PassOnGpu, HostThreadsMeetAtABarrierAndSignalEachOther) {
  const Program program = program_of(R"(
signals: {ready: {}}
threads:
  main:
    - host_barrier: {}
    - region:
        name: wait
        ops:
          - host_wait: {signal: ready}
  other:
    - host_barrier: {}
    - host_compute: {duration: 3ms}
    - host_signal: {signal: ready}
)");
  FORETRACE_NEEDS_GPUS(1);
  TestRun run{program};
  for (int pass = 0; pass < 3; ++pass) {
    run->pass();
    EXPECT_NEAR(static_cast<double>(run->region_times().at(0).ns), 3e6, 6e5);
  }
}

TEST(PassOnGpu, FreshMemoryIsAllocatedInEveryPass) {
  const Program program = program_of(R"(
buffers:
  x:     {memory: device, size: 1MiB}
  fresh: {memory: fresh_pageable, size: 1MiB}
  own:   {memory: device, size: 1MiB}
threads:
  main:
    - malloc: {buffer: own}
    - memcpy: {src: x, dst: fresh}
    - memcpy: {src: fresh, dst: own}
    - device_synchronize: {}
)");
  FORETRACE_NEEDS_GPUS(1);
  TestRun run{program};
  for (int pass = 0; pass < 3; ++pass) run->pass();
}

TEST(PassOnGpu, AGroupsKernelsBelongToItsCallsOnEveryDevice) {
  const Program program = program_of(R"(
devices: 2
streams: {comm: {each: device, flags: non_blocking}}
buffers: {data: {each: device, memory: device, size: 1MiB}}
communicators: {world: {members: all_devices, init: all}}
threads:
  main:
    - nccl_group:
        ops:
          - for_each:
              index: d
              in: devices
              ops:
                - nccl_all_reduce: {id: ar, comm: world(d), stream: comm(d), buffer: data(d), type: float32, op: sum}
    - for_each:
        index: d
        in: devices
        ops:
          - stream_synchronize: {stream: comm(d)}
)");
  FORETRACE_NEEDS_GPUS(2);
  const Timeline timeline = trace(program);
  for (std::uint32_t device = 0; device < 2; ++device) {
    const Span kernel = span_of(timeline, program, "ar", 1, device);
    EXPECT_EQ(timeline.lanes[kernel.lane].device, device);
    EXPECT_THAT(timeline.details[kernel.detail].kernel, testing::HasSubstr("nccl"));
  }
}

}  // namespace
}  // namespace foretrace::hw
