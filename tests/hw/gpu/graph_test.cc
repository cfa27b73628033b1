// Host functions and graphs on a real GPU, from the spans of a traced pass.
#include <gmock/gmock.h>

#include "tests/hw/gpu/gpu.h"
#include "tests/hw/gpu/trace.h"
#include "tests/hw/programs.h"

namespace foretrace::hw {
namespace {

/// Nanoseconds: what the clocks of host and GPU may differ by.
constexpr std::int64_t kClockErrorNs = 5000;

TEST(HostFunctionOnGpu, RunsInTheOrderOfItsStream) {
  const Program program = program_of(R"(
streams: {s: {flags: non_blocking}}
threads:
  main:
    - spin: {id: before, stream: s, duration: 1ms}
    - host_func: {id: function, stream: s, duration: 2ms}
    - spin: {id: after, stream: s, duration: 1ms}
    - stream_synchronize: {stream: s}
)");
  FORETRACE_NEEDS_GPUS(1);
  const Timeline timeline = trace(program);
  const Span call = span_of(timeline, program, "function", 0);
  const Span function = span_of(timeline, program, "function", 1);
  EXPECT_LT(call.end_ns - call.begin_ns, 500'000) << "the call only queues it";
  EXPECT_GE(function.begin_ns, span_of(timeline, program, "before", 1).end_ns - kClockErrorNs);
  EXPECT_GE(function.end_ns - function.begin_ns, 2'000'000);
  EXPECT_GE(span_of(timeline, program, "after", 1).begin_ns, function.end_ns - kClockErrorNs);
  EXPECT_EQ(timeline.lanes[function.lane].name, "s");
}

TEST(HostFunctionOnGpu, HoldsItsStreamUntilTheSignal) {
  const Program program = program_of(R"(
streams: {s: {flags: non_blocking}}
signals: {go: {}, done: {}}
threads:
  main:
    - host_func: {id: function, stream: s, wait: go, signal: done}
    - host_compute: {id: busy, duration: 3ms}
    - host_signal: {signal: go}
    - host_wait: {id: wait, signal: done}
    - stream_synchronize: {stream: s}
)");
  FORETRACE_NEEDS_GPUS(1);
  const Timeline timeline = trace(program);
  const Span function = span_of(timeline, program, "function", 1);
  EXPECT_GE(function.end_ns, span_of(timeline, program, "busy", 0).end_ns);
  EXPECT_LT(function.begin_ns, span_of(timeline, program, "busy", 0).end_ns);
}

TEST(GraphOnGpu, EverythingCapturedFromTwoStreamsBelongsToItsLaunch) {
  const Program program = program_of(R"(
streams: {a: {flags: non_blocking}, b: {flags: non_blocking}, c: {flags: non_blocking}}
events: {fork: {}, join: {}}
graphs: {g: {}}
buffers:
  host: {memory: pinned, size: 1MiB}
  x:    {memory: device, size: 1MiB}
threads:
  main:
    - graph_capture:
        id: capture
        graph: g
        stream: a
        ops:
          - memcpy_async: {id: first, stream: a, src: host, dst: x}
          - event_record: {event: fork, stream: a}
          - stream_wait_event: {stream: b, event: fork}
          - spin: {id: left, stream: a, duration: 1ms}
          - spin: {id: right, stream: b, duration: 1ms}
          - event_record: {event: join, stream: b}
          - stream_wait_event: {stream: a, event: join}
          - host_func: {id: function, stream: a, duration: 1ms}
          - memcpy_async: {id: last, stream: a, src: x, dst: host}
    - repeat: {times: 2, ops: [{graph_launch: {id: launch, graph: g, stream: c}}]}
    - stream_synchronize: {stream: c}
)");
  FORETRACE_NEEDS_GPUS(1);
  const Timeline timeline = trace(program);
  for (std::uint64_t instance = 0; instance < 2; ++instance) {
    const auto part = [&](std::uint16_t number) {
      return span_of(timeline, program, "launch", number, instance);
    };
    // The copy, two kernels at once, the function, the copy back.
    const Span call = part(0);
    EXPECT_LT(call.end_ns - call.begin_ns, 1'000'000) << "one call that only queues";
    for (std::uint16_t number = 1; number <= 5; ++number) {
      EXPECT_EQ(timeline.lanes[part(number).lane].name, "c");
    }
    EXPECT_GE(part(2).begin_ns, part(1).end_ns - 1000);
    EXPECT_LT(part(3).begin_ns, part(2).end_ns) << "the branches run at once";
    EXPECT_NEAR(static_cast<double>(part(3).end_ns - part(3).begin_ns), 1e6, 4e4);
    EXPECT_GE(part(4).begin_ns, part(3).end_ns - kClockErrorNs);
    EXPECT_GE(part(4).end_ns - part(4).begin_ns, 1'000'000);
    EXPECT_GE(part(5).begin_ns, part(4).end_ns - kClockErrorNs);
  }
  for (const char* captured : {"first", "left", "right", "function", "last"}) {
    EXPECT_FALSE(has_span(timeline, program, captured, 1)) << captured << " ran by itself";
  }
  EXPECT_TRUE(has_span(timeline, program, "capture", 0));
}

TEST(GraphOnGpu, HoldsLibraryKernelsToo) {
  const Program program = program_of(R"(
streams: {s: {flags: non_blocking}}
graphs: {g: {}}
buffers: {a: {memory: device, size: 1MiB}, b: {memory: device, size: 1MiB}, c: {memory: device, size: 1MiB}}
communicators: {world: {members: all_devices, init: rank}}
threads:
  main:
    - graph_capture:
        graph: g
        stream: s
        ops:
          - gemm: {stream: s, m: 512, n: 512, k: 512, type: float32, a: a, b: b, c: c}
          - nccl_all_reduce: {comm: world, stream: s, buffer: c, type: float32, op: sum}
          - elementwise: {stream: s, src: c, dst: c}
    - graph_launch: {id: launch, graph: g, stream: s}
    - stream_synchronize: {stream: s}
)");
  FORETRACE_NEEDS_GPUS(1);
  const Timeline timeline = trace(program);
  EXPECT_TRUE(has_span(timeline, program, "launch", 2));
}

}  // namespace
}  // namespace foretrace::hw
