// NCCL between processes: rendezvous, grouping, first use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/sim/nccl/two_ranks.h"
#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

TEST(Collective, EndsForAllRanksOnceTheLastHasCome) {
  const Timeline t = predict(kTwoRanks + R"(
threads:
  main:
    - host_compute: {duration: 100us * process}
    - nccl_all_reduce: {id: ar, comm: world, stream: s, buffer: x, type: float32}
)");
  const auto spans = device_spans(t, "ar");
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_LT(us(spans[0].begin_ns), 10) << "rank 0 begins, and waits inside its kernel";
  EXPECT_GE(us(spans[1].begin_ns), 100);
  EXPECT_EQ(spans[0].end_ns, spans[1].end_ns);
}

const std::string kLateRank = kTwoRanks + R"(
threads:
  main:
    - host_compute: {duration: 100us * process}
    - nccl_all_reduce: {id: ar, comm: world, stream: s, buffer: x, type: float32}
)";

TEST(Collective, LetsItsHostThreadGoOn) {
  EXPECT_LT(us(host_spans(predict(kLateRank), "ar")[0].end_ns), 20);
}

TEST(Collective, HoldsItsHostThreadWhereLaunchesBlock) {
  const Timeline t = predict(kLateRank + "environment: {CUDA_LAUNCH_BLOCKING: 1}\n");
  EXPECT_GT(host_spans(t, "ar")[0].end_ns, device_spans(t, "ar")[0].end_ns);
}

/// NCCL's times are those of a ring: a chain of 20 us and 10 us for each round of 128 threads * 8
/// B, 100 us from rank to rank. 4000 B: 60 us, of which the wire takes 4.
Machine machine_with_chains() {
  Machine machine = unit_machine();
  for (const auto& [param, value] : {std::pair{Param::NcclBroadcastLlBase, 20e-6},
                                     {Param::NcclBroadcastLlStep, 100e-6},
                                     {Param::NcclBroadcastLlRound, 10e-6},
                                     {Param::NcclReduceLlBase, 20e-6},
                                     {Param::NcclReduceLlStep, 100e-6},
                                     {Param::NcclReduceLlRound, 10e-6},
                                     {Param::NcclThreadFloor, 1.0},
                                     {Param::NcclChannelDoubling, 0.0}}) {
    machine.set(param, {value, 0, ParameterClass::Assumed, "", ""});
  }
  return machine;
}

const std::string kThreeRanks = kOneStream + R"(
processes: 3
environment: {NCCL_PROTO: LL, NCCL_ALGO: Ring}
buffers: {x: {memory: device, size: 4KB}}
)";

TEST(Chain, OfCallsInARowIsFilledOnce) {
  const Timeline t = predict(kThreeRanks + R"(
threads:
  main:
    - repeat: {times: 5, ops: [nccl_broadcast: {id: b, comm: world, stream: s, buffer: x, type: float32, root: 1}]}
)",
                             machine_with_chains());
  const auto spans = device_spans(t, "b");
  ASSERT_EQ(spans.size(), 15u);
  std::map<std::uint32_t, std::int64_t> last;
  for (const Span& span : spans) last[span.lane] = std::max(last[span.lane], span.end_ns);
  std::vector<double> ends;
  for (const auto& [lane, end] : last) ends.push_back(us(end));
  ASSERT_EQ(ends.size(), 3u);
  EXPECT_NEAR(ends[2] - ends[1], 100, 0.1) << "the ranks behind the root, one after the other";
  EXPECT_NEAR(ends[0] - ends[2], 100, 0.1);
  EXPECT_NEAR(ends[1], 5 * 60, 2) << "the root waits for nobody";
}

TEST(Chain, OfAReduceEndsAtItsRootAndPassesALateRankLate) {
  const Timeline t = predict(kThreeRanks + R"(
threads:
  main:
    - host_compute: {duration: 500us * process}
    - nccl_reduce: {id: r, comm: world, stream: s, buffer: x, type: float32, root: 0}
)",
                             machine_with_chains());
  const auto spans = device_spans(t, "r");  // in order of begin: ranks 0, 1 and 2
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_NEAR(us(spans[1].end_ns - spans[1].begin_ns), 60, 0.1) << "the first of the chain";
  EXPECT_NEAR(us(spans[2].end_ns - spans[2].begin_ns), 56, 0.1) << "its data lie in its buffers";
  EXPECT_NEAR(us(spans[0].end_ns - spans[2].end_ns), 100, 0.1) << "the root";
}

TEST(Collective, WaitsLongerForMemoryThatOtherKernelsUse) {
  Machine machine = unit_machine();
  machine.set(Param::NcclMemorySlowdown, {1, 0, ParameterClass::Assumed, "", ""});
  const Timeline t = predict(R"(
processes: 2
environment: {NCCL_MAX_CTAS: 2}
streams: {s: {flags: non_blocking}, work: {flags: non_blocking}}
buffers: {x: {memory: device, size: 64MB}, y: {memory: device, size: 1GB}}
communicators: {world: {members: all_devices, init: rank}}
threads:
  main:
    - nccl_all_reduce: {id: alone, comm: world, stream: s, buffer: x, type: float32}
    - stream_synchronize: {stream: s}
    - nccl_all_reduce: {id: beside, comm: world, stream: s, buffer: x, type: float32}
    - elementwise: {stream: work, src: y, dst: y}
)",
                             machine);
  EXPECT_NEAR(device_us(t, "beside") / device_us(t, "alone"), 1.8, 0.001)
      << "on the other 8 of 10 SMs the kernel takes 80 % of the bandwidth";
}

/// Two communicators, of which a graph captures the first: `before` and `after` are outside of it.
const std::string kBesideAGraph = R"(
processes: 2
streams: {s: {flags: non_blocking}}
buffers: {x: {memory: device, size: 1MB}}
graphs: {g: {}}
communicators: {captured: {members: all_devices, init: rank}, free: {members: all_devices, init: rank}}
threads:
  main:
    - nccl_all_reduce: {comm: captured, stream: s, buffer: x, type: float32}
    - nccl_all_reduce: {id: before, comm: captured, stream: s, buffer: x, type: float32}
    - graph_capture: {graph: g, stream: s, ops: [{nccl_all_reduce: {comm: captured, stream: s, buffer: x, type: float32}}]}
    - nccl_all_reduce: {id: after, comm: captured, stream: s, buffer: x, type: float32}
    - nccl_all_reduce: {comm: free, stream: s, buffer: x, type: float32}
    - nccl_all_reduce: {id: free, comm: free, stream: s, buffer: x, type: float32}
)";

Timeline predict_beside_a_graph(const std::string& settings) {
  Machine machine = unit_machine();
  machine.set(Param::NcclHostMixing, {2e-6, 0, ParameterClass::Assumed, "", ""});
  return predict(settings + kBesideAGraph, machine);
}

TEST(Collective, TakesTheHostLongerOnceAGraphHasCapturedItsCommunicator) {
  const Timeline t = predict_beside_a_graph("warmup: 0\n");
  EXPECT_NEAR(host_us(t, "before"), host_us(t, "free"), 0.001);
  EXPECT_NEAR(host_us(t, "after"), host_us(t, "free") + 2, 0.001);
}

TEST(Collective, TakesTheHostLongerInAllPassesAfterTheOneThatCaptured) {
  const Timeline t = predict_beside_a_graph("warmup: 1\n");
  EXPECT_NEAR(host_us(t, "before"), host_us(t, "free") + 2, 0.001);
  EXPECT_NEAR(host_us(t, "after"), host_us(t, "free") + 2, 0.001);
}

TEST(Collective, TakesTheHostNoLongerWithoutNcclsSupportForMixing) {
  const Timeline t = predict_beside_a_graph("environment: {NCCL_GRAPH_MIXING_SUPPORT: 0}\n");
  EXPECT_NEAR(host_us(t, "after"), host_us(t, "free"), 0.001);
}

TEST(Gather, TakesItsRootsHostThreadLongerByEachOtherRank) {
  Machine machine = unit_machine();
  machine.set(Param::NcclHostPerOp, {1e-6, 0, ParameterClass::Assumed, "", ""});
  const Timeline t = predict(R"(
processes: 4
streams: {s: {flags: non_blocking}}
buffers: {x: {memory: device, size: 4MB}, y: {memory: device, size: 16MB}}
communicators: {world: {members: all_devices, init: rank}}
threads:
  main:
    - nccl_gather: {id: g, comm: world, stream: s, send_buffer: x, recv_buffer: y, size: 1000B, type: int8, root: 1}
)",
                             machine);
  std::vector<double> calls;
  for (const Span& call : host_spans(t, "g")) calls.push_back(us(call.end_ns - call.begin_ns));
  std::ranges::sort(calls);
  ASSERT_EQ(calls.size(), 4u);
  EXPECT_NEAR(calls[2], calls[0], 0.001);
  EXPECT_NEAR(calls[3], calls[0] + 4, 0.001) << "four receives and a send instead of a send";
}

TEST(SendRecv, MatchInOrder) {
  const Timeline t = predict(kTwoRanks + R"(
threads:
  main:
    - nccl_group:
        ops:
          - nccl_send: {id: send, comm: world, stream: s, buffer: x, size: 1000B, type: float32, peer: 1 - process}
          - nccl_recv: {id: recv, comm: world, stream: s, buffer: x, size: 1000B, type: float32, peer: 1 - process}
    - stream_synchronize: {stream: s}
)");
  EXPECT_EQ(t.outcome.kind, Outcome::Kind::Completed);
  EXPECT_EQ(device_spans(t, "send").size(), 2u);
  EXPECT_EQ(device_spans(t, "send")[0].end_ns, device_spans(t, "recv")[0].end_ns) << "one kernel";
}

TEST(SendRecv, OfEveryRankToItselfEnd) {
  const Timeline t = predict(R"(
processes: 3
streams: {s: {flags: non_blocking}}
buffers: {x: {memory: device, size: 1MB}, y: {memory: device, size: 1MB}}
communicators: {world: {members: all_devices, init: rank}}
threads:
  main:
    - nccl_group:
        ops:
          - nccl_send: {id: send, comm: world, stream: s, buffer: x, size: 1000B, type: int8, peer: process}
          - nccl_recv: {comm: world, stream: s, buffer: y, size: 1000B, type: int8, peer: process}
    - stream_synchronize: {stream: s}
)");
  EXPECT_EQ(t.outcome.kind, Outcome::Kind::Completed);
  EXPECT_EQ(device_spans(t, "send").size(), 3u);
}

TEST(SendRecv, MayBeBetweenAllOf17Thousand822Pairs) {
  Machine machine = unit_machine();
  machine.nodes = 67;
  const Timeline t = predict(R"(
processes: 134
nodes: 67
streams: {s: {flags: non_blocking}}
buffers: {x: {memory: device, size: 1MB}, y: {memory: device, size: 1MB}}
communicators: {world: {members: all_devices, init: rank}}
threads:
  main:
    - repeat:
        times: 133
        index: i
        ops:
          - nccl_group:
              ops:
                - nccl_send: {id: send, comm: world, stream: s, buffer: x, size: 1000B, type: int8, peer: (process + i + 1) % 134}
                - nccl_recv: {comm: world, stream: s, buffer: y, size: 1000B, type: int8, peer: (process + 133 - i) % 134}
    - stream_synchronize: {stream: s}
)",
                             machine);
  EXPECT_EQ(t.outcome.kind, Outcome::Kind::Completed);
  EXPECT_EQ(device_spans(t, "send").size(), 134u * 133);
}

TEST(SendRecv, InAGroupWithACollectiveBeginAfterIt) {
  const Timeline t = predict(kTwoRanks + R"(
threads:
  main:
    - nccl_all_reduce: {id: alone, comm: world, stream: s, buffer: x, type: float32}
    - stream_synchronize: {stream: s}
    - nccl_all_to_all: {id: exchange, comm: world, stream: s, send_buffer: x, recv_buffer: x, size: 500000B, type: int8}
    - stream_synchronize: {stream: s}
    - nccl_group:
        ops:
          - nccl_all_to_all: {id: both, comm: world, stream: s, send_buffer: x, recv_buffer: x, size: 500000B, type: int8}
          - nccl_all_reduce: {comm: world, stream: s, buffer: x, type: float32}
    - stream_synchronize: {stream: s}
)");
  EXPECT_NEAR(device_us(t, "both"), device_us(t, "alone") + device_us(t, "exchange"), 0.01);
}

TEST(Collective, MayBeInAGroupWithASendOnOneRankAndAloneOnTheOther) {
  const Timeline t = predict(kTwoRanks + R"(
threads:
  grouping:
    processes: [0]
    ops:
      - nccl_group:
          ops:
            - nccl_all_reduce: {comm: world, stream: s, buffer: x, type: float32}
            - nccl_send: {comm: world, stream: s, buffer: x, size: 1000B, type: int8, peer: 1}
      - stream_synchronize: {stream: s}
  apart:
    processes: [1]
    ops:
      - nccl_all_reduce: {comm: world, stream: s, buffer: x, type: float32}
      - nccl_recv: {comm: world, stream: s, buffer: x, size: 1000B, type: int8, peer: 0}
      - stream_synchronize: {stream: s}
)");
  EXPECT_EQ(t.outcome.kind, Outcome::Kind::Completed);
}

TEST(FirstUse, ConnectsOnTheHostWhenThereIsNoWarmUp) {
  const Timeline t = predict("warmup: 0\n" + kTwoRanks + R"(
threads:
  main:
    - region: {name: first, ops: [nccl_all_reduce: {comm: world, stream: s, buffer: x, type: float32}]}
    - stream_synchronize: {stream: s}
    - region: {name: later, ops: [nccl_all_reduce: {comm: world, stream: s, buffer: x, type: float32}]}
    - stream_synchronize: {stream: s}
)");
  EXPECT_NEAR(region_us(t, "first") - region_us(t, "later"), 100, 0.01) << "nccl.connect";
}

/// It woke itself as the last to come, and went on twice: the next call's operations were issued
/// with this one's.
TEST(FirstUse, OfOneThreadWithAllRanksReturnsOnce) {
  const Timeline t = predict(R"(
warmup: 0
devices: 2
streams: {s: {each: device, flags: non_blocking}}
buffers: {x: {each: device, memory: device, size: 1MB}}
communicators: {world: {members: all_devices}}
threads:
  main:
    - nccl_group: {id: first, ops: [{nccl_all_reduce: {id: a, comm: world(0), stream: s(0), buffer: x(0), type: float32}}, {nccl_all_reduce: {id: b, comm: world(1), stream: s(1), buffer: x(1), type: float32}}]}
    - nccl_group: {id: later, ops: [{nccl_all_reduce: {id: c, comm: world(0), stream: s(0), buffer: x(0), type: float32}}, {nccl_all_reduce: {id: d, comm: world(1), stream: s(1), buffer: x(1), type: float32}}]}
    - device_synchronize: {device: 0}
)");
  ASSERT_EQ(host_spans(t, "first").size(), 1U);
  ASSERT_EQ(host_spans(t, "later").size(), 1U);
  EXPECT_GE(host_spans(t, "later")[0].begin_ns, host_spans(t, "first")[0].end_ns);
  EXPECT_GE(device_spans(t, "c")[0].begin_ns, device_spans(t, "a")[0].end_ns);
}

TEST(Launches, OfOneCommunicatorRunInOrderWhateverTheirStreams) {
  const Timeline t = predict(R"(
processes: 2
streams: {s: {flags: non_blocking}, u: {flags: non_blocking}}
buffers: {x: {memory: device, size: 1MB}}
communicators: {world: {members: all_devices, init: rank}}
threads:
  main:
    - nccl_all_reduce: {id: one, comm: world, stream: s, buffer: x, type: float32}
    - nccl_all_reduce: {id: two, comm: world, stream: u, buffer: x, type: float32}
)");
  EXPECT_GE(device_spans(t, "two")[0].begin_ns, device_spans(t, "one")[0].end_ns);
}

}  // namespace
}  // namespace foretrace::test
