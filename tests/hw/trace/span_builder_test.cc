#include "hw/trace/span_builder.h"

#include <gmock/gmock.h>

#include "tests/hw/programs.h"

namespace foretrace::hw {
namespace {

using testing::SizeIs;

using Kind = DeviceActivity::Kind;

/// Copies and kernels on two streams, in a loop.
Program pipeline() {
  return program_of(R"(
streams: {copy: {flags: non_blocking}, compute: {flags: non_blocking}}
buffers:
  host: {memory: pinned, size: 64B}
  x:    {memory: device, size: 64B}
threads:
  main:
    - repeat:
        times: 2
        ops:
          - memcpy_async: {stream: copy, src: host, dst: x}
          - spin: {stream: compute, duration: 1us}
    - memcpy: {src: x, dst: host}
)");
}

std::uint32_t id_of(const Program& program, const std::string& kind) {
  return find_op(program, kind).id.value;
}

const Lane& lane_of(const Timeline& timeline, const Span& span) {
  return timeline.lanes[span.lane];
}

TEST(SpanBuilder, PutsCallsOnTheirThreadAndWorkOnItsStream) {
  const Program program = pipeline();
  const std::uint32_t spin = id_of(program, "spin");
  TracedPass pass;
  pass.first_ordinal = 4;  // this process's device 0 is the host's GPU 4
  pass.released_ns = 1000;
  pass.calls = {{{{spin, 1}, 1100, 1105}}};
  pass.activities = {{Kind::Kernel, Execution{spin, 1}, 1200, 2200, 4, 13, "spin_kernel", 1}};
  const BuiltSpans built = build_spans(program, pass);
  const Timeline& timeline = built.timeline;
  ASSERT_THAT(timeline.spans, SizeIs(2));
  EXPECT_EQ(timeline.spans[0].part, 0);
  EXPECT_EQ(timeline.spans[0].begin_ns, 100);
  EXPECT_EQ(timeline.spans[0].end_ns, 105);
  EXPECT_EQ(lane_of(timeline, timeline.spans[0]).name, "main");
  EXPECT_EQ(timeline.spans[1].part, 1);
  EXPECT_EQ(timeline.spans[1].instance, 1U);
  EXPECT_EQ(timeline.spans[1].begin_ns, 200);
  EXPECT_EQ(lane_of(timeline, timeline.spans[1]).name, "compute");
  EXPECT_EQ(lane_of(timeline, timeline.spans[1]).device, 0U);
  EXPECT_EQ(timeline.details[timeline.spans[1].detail].kernel, "spin_kernel");
  EXPECT_EQ(built.unattributed, 0U);
}

TEST(SpanBuilder, PutsACopyWithoutStreamOnTheDefaultStream) {
  const Program program = pipeline();
  const std::uint32_t copy = id_of(program, "memcpy");
  TracedPass pass;
  pass.calls.resize(1);
  pass.activities = {{Kind::Copy, Execution{copy, 0}, 10, 20, 0, 7, "", 0}};
  const BuiltSpans built = build_spans(program, pass);
  ASSERT_THAT(built.timeline.spans, SizeIs(1));
  EXPECT_EQ(lane_of(built.timeline, built.timeline.spans[0]).name, "default(0)");
}

TEST(SpanBuilder, JoinsThePiecesOfAStagedCopy) {
  const Program program = pipeline();
  const std::uint32_t copy = id_of(program, "memcpy_async");
  TracedPass pass;
  pass.calls.resize(1);
  pass.activities = {{Kind::Copy, Execution{copy, 0}, 10, 20, 0, 7, "", 0},
                     {Kind::Copy, Execution{copy, 0}, 25, 40, 0, 7, "", 0},
                     {Kind::Copy, Execution{copy, 1}, 50, 60, 0, 7, "", 0}};
  const BuiltSpans built = build_spans(program, pass);
  ASSERT_THAT(built.timeline.spans, SizeIs(2));
  EXPECT_EQ(built.timeline.spans[0].begin_ns, 10);
  EXPECT_EQ(built.timeline.spans[0].end_ns, 40);
  EXPECT_EQ(built.timeline.spans[1].instance, 1U);
}

TEST(SpanBuilder, NumbersTheKernelsOfOneOperation) {
  const Program program = pipeline();
  const std::uint32_t spin = id_of(program, "spin");
  TracedPass pass;
  pass.calls.resize(1);
  pass.activities = {{Kind::Kernel, Execution{spin, 0}, 10, 20, 0, 7, "first", 1},
                     {Kind::Kernel, Execution{spin, 0}, 20, 30, 0, 7, "second", 1}};
  const BuiltSpans built = build_spans(program, pass);
  ASSERT_THAT(built.timeline.spans, SizeIs(2));
  EXPECT_EQ(built.timeline.spans[0].part, 1);
  EXPECT_EQ(built.timeline.spans[1].part, 2);
}

TEST(SpanBuilder, CountsWhatNoOperationCaused) {
  const Program program = pipeline();
  TracedPass pass;
  pass.released_ns = 5;
  pass.calls.resize(1);
  pass.activities = {
      {Kind::Kernel, std::nullopt, 1, 3, 0, 7, "refills a buffer before the pass", 1},
      {Kind::Kernel, std::nullopt, 10, 20, 0, 7, "library", 1},
      {Kind::Kernel, Execution{999, 0}, 10, 20, 0, 7, "strange", 1}};
  const BuiltSpans built = build_spans(program, pass);
  EXPECT_THAT(built.timeline.spans, SizeIs(0));
  EXPECT_EQ(built.unattributed, 2U);
}

TEST(SpanBuilder, GivesAGroupsKernelToItsFirstOperationOnThatStream) {
  const Program program = program_of(R"(
devices: 2
streams: {comm: {each: device, flags: non_blocking}}
buffers: {data: {each: device, memory: device, size: 64B}}
communicators: {world: {members: all_devices, init: all}}
threads:
  main:
    - nccl_group:
        ops:
          - for_each:
              index: d
              in: devices
              ops:
                - nccl_all_reduce: {comm: world(d), stream: comm(d), buffer: data(d), type: float32, op: sum}
)");
  const std::uint32_t group = id_of(program, "nccl_group");
  const std::uint32_t reduce = id_of(program, "nccl_all_reduce");
  TracedPass pass;
  pass.first_ordinal = 2;
  pass.calls.resize(1);
  pass.grouped = {{{group, 0}, {reduce, 0}, 2, 20}, {{group, 0}, {reduce, 1}, 3, 30}};
  pass.activities = {{Kind::Kernel, Execution{group, 0}, 10, 20, 2, 20,
                      "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 24},
                     {Kind::Kernel, Execution{group, 0}, 11, 20, 3, 30, "ncclDevKernel", 24}};
  const BuiltSpans built = build_spans(program, pass);
  ASSERT_THAT(built.timeline.spans, SizeIs(2));
  EXPECT_EQ(built.timeline.spans[0].op, reduce);
  EXPECT_EQ(built.timeline.spans[0].instance, 0U);
  EXPECT_EQ(lane_of(built.timeline, built.timeline.spans[0]).name, "comm(0)");
  const SpanDetail& detail = built.timeline.details[built.timeline.spans[0].detail];
  EXPECT_EQ(detail.algorithm, "Ring");
  EXPECT_EQ(detail.channels, 24U);
  EXPECT_EQ(built.timeline.spans[1].instance, 1U);
  EXPECT_EQ(lane_of(built.timeline, built.timeline.spans[1]).name, "comm(1)");
  EXPECT_EQ(lane_of(built.timeline, built.timeline.spans[1]).device, 1U);
}

TEST(SpanBuilder, FindsAGroupsOperationByItsDeviceWhenTheStreamIsUnknown) {
  const Program program = program_of(R"(
buffers: {data: {memory: device, size: 64B}}
communicators: {world: {members: all_devices, init: all}}
threads:
  main:
    - nccl_group:
        ops:
          - nccl_all_reduce: {comm: world, buffer: data, type: float32, op: sum}
)");
  const std::uint32_t group = id_of(program, "nccl_group");
  const std::uint32_t reduce = id_of(program, "nccl_all_reduce");
  TracedPass pass;
  pass.calls.resize(1);
  pass.grouped = {{{group, 0}, {reduce, 0}, 0, 0}};
  pass.activities = {{Kind::Kernel, Execution{group, 0}, 10, 20, 0, 7, "ncclDevKernel", 24}};
  const BuiltSpans built = build_spans(program, pass);
  ASSERT_THAT(built.timeline.spans, SizeIs(1));
  EXPECT_EQ(built.timeline.spans[0].op, reduce);
}

constexpr const char* kGraph = R"(
streams: {a: {flags: non_blocking}, b: {flags: non_blocking}}
events: {fork: {}, join: {}}
graphs: {g: {}}
buffers:
  host: {memory: pinned, size: 64B}
  x:    {memory: device, size: 64B}
threads:
  main:
    - graph_capture:
        graph: g
        stream: a
        ops:
          - memcpy_async: {stream: a, src: host, dst: x}
          - memcpy_async: {stream: a, src: x, dst: host}
          - host_func: {stream: a, duration: 1us}
    - repeat:
        times: 2
        ops:
          - graph_launch: {graph: g, stream: b}
)";

TEST(SpanBuilder, NumbersEverythingOfAGraphOnItsLaunchsStream) {
  const Program program = program_of(kGraph);
  const std::uint32_t launch = id_of(program, "graph_launch");
  TracedPass pass;
  pass.calls.resize(1);
  pass.activities = {{Kind::Copy, Execution{launch, 1}, 10, 20, 0, 7, "", 0},
                     {Kind::Copy, Execution{launch, 1}, 25, 40, 0, 7, "", 0},
                     {Kind::Kernel, Execution{launch, 1}, 60, 70, 0, 8, "k", 1}};
  pass.host_functions = {{Kind::HostFunction, Execution{launch, 1}, 45, 50, 0, 0, "", 0}};
  const Timeline timeline = build_spans(program, pass).timeline;
  ASSERT_THAT(timeline.spans, SizeIs(4)) << "copies of a graph stay apart";
  const std::int64_t begins[] = {10, 25, 45, 60};
  for (std::uint16_t i = 0; i < 4; ++i) {
    EXPECT_EQ(timeline.spans[i].op, launch);
    EXPECT_EQ(timeline.spans[i].instance, 1U);
    EXPECT_EQ(timeline.spans[i].part, i + 1);
    EXPECT_EQ(timeline.spans[i].begin_ns, begins[i]);
    EXPECT_EQ(lane_of(timeline, timeline.spans[i]).name, "b");
  }
}

TEST(SpanBuilder, PutsAHostFunctionOnItsStream) {
  const Program program = program_of(kGraph);
  const std::uint32_t function = id_of(program, "host_func");
  TracedPass pass;
  pass.calls.resize(1);
  pass.released_ns = 40;
  pass.host_functions = {{Kind::HostFunction, Execution{function, 0}, 45, 50, 0, 0, "", 0}};
  const Timeline timeline = build_spans(program, pass).timeline;
  ASSERT_THAT(timeline.spans, SizeIs(1));
  EXPECT_EQ(timeline.spans[0].part, 1);
  EXPECT_EQ(timeline.spans[0].begin_ns, 5);
  EXPECT_EQ(timeline.spans[0].end_ns, 10);
  EXPECT_EQ(lane_of(timeline, timeline.spans[0]).kind, LaneKind::Stream);
  EXPECT_EQ(lane_of(timeline, timeline.spans[0]).name, "a");
}

}  // namespace
}  // namespace foretrace::hw
