// CUDA graphs. Times add up from tests/sim/unit_machine.h: a graph's launch costs 1 us and 1 us a
// node, and reaches the GPU at once.
#include <gtest/gtest.h>

#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

const std::string kGraphStreams = R"(
streams: {a: {flags: non_blocking}, b: {flags: non_blocking}}
events: {fork: {}, join: {}}
graphs: {g: {}}
)";

TEST(Graph, RunsNothingWhileItIsCaptured) {
  const Timeline t = predict(kGraphStreams + R"(
threads:
  main:
    - graph_capture:
        graph: g
        stream: a
        ops: [{spin: {id: k, stream: a, duration: 10us}}]
    - device_synchronize: {id: s}
)");
  EXPECT_TRUE(device_spans(t, "k").empty());
  // capture 1, instantiate 1 + 1
  EXPECT_EQ(us(host_spans(t, "s")[0].begin_ns), 3);
}

TEST(Graph, RunsItsNodesInOrderAsPartsOfItsLaunch) {
  const Timeline t = predict(kGraphStreams + R"(
threads:
  main:
    - graph_capture:
        graph: g
        stream: a
        ops: [{repeat: {times: 3, ops: [{spin: {stream: a, duration: 10us}}]}}]
    - device_synchronize: {}
    - graph_launch: {id: run, graph: g, stream: b}
    - stream_synchronize: {id: s, stream: b}
)");
  const auto spans = device_spans(t, "run");
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_EQ(spans[0].part, 1);
  EXPECT_EQ(spans[2].part, 3);
  EXPECT_EQ(spans[1].begin_ns, spans[0].end_ns);
  EXPECT_EQ(spans[2].begin_ns, spans[1].end_ns);
  EXPECT_EQ(us(host_spans(t, "s")[0].end_ns), us(spans[2].end_ns) + 1);
}

TEST(Graph, RunsForkedStreamsAtOnceAndJoinsThem) {
  const Timeline t = predict(kGraphStreams + R"(
threads:
  main:
    - graph_capture:
        graph: g
        stream: a
        ops:
          - event_record: {event: fork, stream: a}
          - stream_wait_event: {stream: b, event: fork}
          - spin: {stream: a, duration: 10us}
          - spin: {stream: b, duration: 30us}
          - event_record: {event: join, stream: b}
          - stream_wait_event: {stream: a, event: join}
          - spin: {stream: a, duration: 10us}
    - graph_launch: {id: run, graph: g, stream: a}
)");
  const auto spans = device_spans(t, "run");
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_EQ(spans[0].begin_ns, spans[1].begin_ns);
  EXPECT_EQ(us(spans[2].begin_ns - spans[0].begin_ns), 30);
}

TEST(Graph, LaunchedTwiceRunsOneAfterTheOtherOnWhateverStreams) {
  const Timeline t = predict(kGraphStreams + R"(
threads:
  main:
    - graph_capture: {graph: g, stream: a, ops: [{spin: {stream: a, duration: 10us}}]}
    - graph_launch: {id: first, graph: g, stream: a}
    - graph_launch: {id: second, graph: g, stream: b}
)");
  EXPECT_EQ(device_spans(t, "second")[0].begin_ns, device_spans(t, "first")[0].end_ns);
}

TEST(Graph, HoldsCollectivesToo) {
  const Timeline t = predict(R"(
processes: 2
communicators: {world: {members: all_devices}}
streams: {a: {flags: non_blocking}}
graphs: {g: {}}
buffers: {x: {memory: device, size: 4MiB}}
threads:
  main:
    - graph_capture:
        graph: g
        stream: a
        ops:
          - nccl_all_reduce: {comm: world, stream: a, buffer: x, type: float32}
          - nccl_all_reduce: {comm: world, stream: a, buffer: x, type: float32}
    - repeat: {times: 2, ops: [{graph_launch: {id: run, graph: g, stream: a}}]}
    - device_synchronize: {}
)");
  EXPECT_EQ(t.outcome.kind, Outcome::Kind::Completed);
  EXPECT_EQ(device_spans(t, "run").size(), 8U) << "two ranks, two launches, two collectives each";
}

TEST(Graph, RunsItsLaunchesInTheOrderOfTheirCallsWhateverTheirStreamsWaitFor) {
  const Timeline t = predict(kGraphStreams + R"(
threads:
  main:
    - graph_capture:
        graph: g
        stream: a
        ops: [{spin: {stream: a, duration: 10us}}]
    - spin: {id: before, stream: a, duration: 100us}
    - graph_launch: {id: first, graph: g, stream: a}
    - graph_launch: {id: second, graph: g, stream: b}
)");
  EXPECT_EQ(device_spans(t, "first")[0].begin_ns, device_spans(t, "before")[0].end_ns);
  EXPECT_EQ(device_spans(t, "second")[0].begin_ns, device_spans(t, "first")[0].end_ns)
      << "cudaGraphLaunch: ordered behind any previous launches of this graph";
}

/// A cache of 100 kB that gives 10,000 bytes per us; memory gives 1000.
Machine machine_with_a_cache() {
  Machine machine = unit_machine();
  const auto set = [&](Param param, double value) {
    machine.set(param, {value, 0, ParameterClass::Assumed, "test", ""});
  };
  set(Param::L2Size, 100e3);
  set(Param::UnaryCached, 10e9);
  return machine;
}

const std::string kArrays = kGraphStreams + R"(
buffers:
  x: {memory: device, size: 10000B, count: 2}
  y: {memory: device, size: 1000000B, count: 2})";

TEST(Graph, FindsInTheCacheWhatIsThereAtEachLaunch) {
  const Timeline t = predict(kArrays + R"(
threads:
  main:
    - graph_capture:
        graph: g
        stream: a
        ops: [{elementwise: {stream: a, src: x(0), dst: x(1)}}]
    - graph_launch: {id: first, graph: g, stream: a}
    - graph_launch: {id: again, graph: g, stream: a}
    - elementwise: {stream: a, src: y(0), dst: y(1)}
    - graph_launch: {id: behind_others, graph: g, stream: a}
    - device_synchronize: {}
)",
                             machine_with_a_cache());
  EXPECT_NEAR(device_us(t, "first"), 20, 0.01);
  EXPECT_NEAR(device_us(t, "again"), 2, 0.01);
  EXPECT_NEAR(device_us(t, "behind_others"), 20, 0.1);
}

TEST(Graph, DrivesOutOfTheCacheWhatItsOwnNodesReadAgain) {
  const Timeline t = predict(kArrays + R"(
threads:
  main:
    - graph_capture:
        graph: g
        stream: a
        ops:
          - repeat: {times: 2, ops: [{elementwise: {stream: a, src: x(0), dst: x(1)}}]}
          - elementwise: {stream: a, src: y(0), dst: y(1)}
    - repeat: {times: 2, ops: [{graph_launch: {id: run, graph: g, stream: a}}]}
    - device_synchronize: {}
)",
                             machine_with_a_cache());
  const auto spans = device_spans(t, "run");
  ASSERT_EQ(spans.size(), 6U);
  const auto node_us = [&](std::size_t i) { return us(spans[i].end_ns - spans[i].begin_ns); };
  EXPECT_NEAR(node_us(3), 20, 0.1) << "of the second launch";
  EXPECT_NEAR(node_us(4), 2, 0.01);
  EXPECT_NEAR(node_us(5), 2000, 1);
}

TEST(Graph, DrivesOutOfTheCacheWhatLaterKernelsRead) {
  const Timeline t = predict(kArrays + R"(
  h: {memory: pinned, size: 1000000B}
threads:
  main:
    - graph_capture:
        graph: g
        stream: a
        ops: [{memcpy_async: {stream: a, src: h, dst: y(0)}}]
    - elementwise: {stream: a, src: x(0), dst: x(1)}
    - elementwise: {id: before, stream: a, src: x(0), dst: x(1)}
    - graph_launch: {graph: g, stream: a}
    - elementwise: {id: after, stream: a, src: x(0), dst: x(1)}
    - device_synchronize: {}
)",
                             machine_with_a_cache());
  EXPECT_NEAR(device_us(t, "before"), 2, 0.01);
  EXPECT_NEAR(device_us(t, "after"), 20, 0.1);
}

TEST(Graph, ClearsFewBytesInARowWithOneWait) {
  Machine machine = unit_machine();
  machine.set(Param::KernelGap, {5e-6, 0, ParameterClass::Assumed, "test", ""});
  machine.set(Param::GraphGap, {0, 0, ParameterClass::Assumed, "test", ""});
  const Timeline t = predict(kGraphStreams + R"(
buffers:
  x: {memory: device, size: 4KiB}
threads:
  main:
    - graph_capture:
        graph: g
        stream: a
        ops:
          - memset_async: {stream: a, dst: x}
          - memset_async: {stream: a, dst: x}
          - spin: {stream: a, duration: 1us}
          - memset_async: {stream: a, dst: x}
    - graph_launch: {id: run, graph: g, stream: a}
    - device_synchronize: {}
)",
                             machine);
  const auto spans = device_spans(t, "run");
  ASSERT_EQ(spans.size(), 4U);
  const auto node_us = [&](std::size_t i) { return us(spans[i].end_ns - spans[i].begin_ns); };
  EXPECT_NEAR(node_us(0), 10.6, 1e-3);
  EXPECT_NEAR(node_us(1), 0.6, 1e-3);
  EXPECT_NEAR(node_us(3), 10.6, 1e-3);
}

TEST(Graph, HasItsRowsOfMemsetsByChainWhateverTheOrderOfTheirCalls) {
  Machine machine = unit_machine();
  machine.set(Param::KernelGap, {5e-6, 0, ParameterClass::Assumed, "test", ""});
  machine.set(Param::GraphGap, {0, 0, ParameterClass::Assumed, "test", ""});
  const Timeline t = predict(kGraphStreams + R"(
buffers: {x: {memory: device, size: 4KiB, count: 2}}
threads:
  main:
    - graph_capture:
        graph: g
        stream: a
        ops:
          - event_record: {event: fork, stream: a}
          - stream_wait_event: {event: fork, stream: b}
          - repeat:
              times: 3
              ops:
                - memset_async: {stream: a, dst: x(0)}
                - memset_async: {stream: b, dst: x(1)}
          - event_record: {event: join, stream: b}
          - stream_wait_event: {event: join, stream: a}
    - graph_launch: {id: run, graph: g, stream: a}
    - device_synchronize: {}
)",
                             machine);
  std::vector<double> nodes;
  for (const Span& span : device_spans(t, "run")) nodes.push_back(us(span.end_ns - span.begin_ns));
  std::ranges::sort(nodes);
  ASSERT_EQ(nodes.size(), 6U);
  EXPECT_NEAR(nodes[3], 0.6, 1e-3) << "two of each chain";
  EXPECT_NEAR(nodes[4], 10.6, 1e-3) << "the first of each";
}

}  // namespace
}  // namespace foretrace::test
