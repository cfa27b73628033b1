// CUDA's order: streams, events and who waits for whom. Times add up from tests/sim/unit_machine.h.
#include <gtest/gtest.h>

#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

const std::string kTwoStreams =
    "streams: {a: {flags: non_blocking}, b: {flags: non_blocking}}\nevents: {e: {}}\n";

TEST(Kernel, BeginsOneLaunchLatencyAfterItsCallAndTheHostGoesOn) {
  const Timeline t = predict(kTwoStreams + R"(
threads:
  main:
    - spin: {id: k, stream: a, duration: 10us}
    - host_compute: {id: next, duration: 1us}
)");
  // call 0..1, kernel 2..12 (+ 0 overhead); the next operation of the host at 1
  ASSERT_EQ(device_spans(t, "k").size(), 1u);
  EXPECT_EQ(us(device_spans(t, "k")[0].begin_ns), 2);
  EXPECT_EQ(us(device_spans(t, "k")[0].end_ns), 12);
  EXPECT_EQ(us(host_spans(t, "next")[0].begin_ns), 1);
}

TEST(Stream, RunsItsWorkInOrder) {
  const Timeline t = predict(kTwoStreams + R"(
threads:
  main:
    - spin: {id: k, stream: a, duration: 10us}
    - spin: {id: l, stream: a, duration: 10us}
    - stream_synchronize: {id: s, stream: a}
)");
  EXPECT_EQ(us(device_spans(t, "l")[0].begin_ns), 12);
  EXPECT_EQ(us(device_spans(t, "l")[0].end_ns), 22);
  EXPECT_EQ(us(host_spans(t, "s")[0].end_ns), 23) << "one wake after the stream's end";
}

TEST(Stream, RunsBesideAnother) {
  const Timeline t = predict(kTwoStreams + R"(
threads:
  main:
    - spin: {id: k, stream: a, duration: 10us}
    - spin: {id: l, stream: b, duration: 10us}
)");
  EXPECT_EQ(us(device_spans(t, "l")[0].begin_ns), 3) << "second call ends at 2";
}

TEST(LegacyDefaultStream, WaitsForBlockingStreamsAndHoldsThemUp) {
  const Timeline t = predict(R"(
streams: {a: {flags: blocking}, n: {flags: non_blocking}}
threads:
  main:
    - spin: {id: first, stream: a, duration: 10us}
    - spin: {id: legacy, stream: default, duration: 10us}
    - spin: {id: after, stream: a, duration: 10us}
    - spin: {id: free, stream: n, duration: 10us}
)");
  EXPECT_EQ(us(device_spans(t, "legacy")[0].begin_ns), 12);
  EXPECT_EQ(us(device_spans(t, "after")[0].begin_ns), 22);
  EXPECT_EQ(us(device_spans(t, "free")[0].begin_ns), 5) << "a non-blocking stream takes no part";
}

TEST(StreamWaitEvent, BlocksTheStreamUntilTheEventIsRecordedAndNotTheHost) {
  const Timeline t = predict(kTwoStreams + R"(
threads:
  main:
    - spin: {id: k, stream: a, duration: 10us}
    - event_record: {stream: a, event: e}
    - stream_wait_event: {id: w, stream: b, event: e}
    - spin: {id: l, stream: b, duration: 10us}
)");
  EXPECT_EQ(us(device_spans(t, "l")[0].begin_ns), 12);
  EXPECT_EQ(us(host_spans(t, "w")[0].end_ns), 3);
}

TEST(StreamWaitEvent, OnAnEventNeverRecordedIsANoOp) {
  const Timeline t = predict(kTwoStreams + R"(
threads:
  main:
    - stream_wait_event: {stream: b, event: e}
    - spin: {id: l, stream: b, duration: 10us}
)");
  EXPECT_EQ(us(device_spans(t, "l")[0].begin_ns), 3);
  EXPECT_EQ(t.outcome.kind, Outcome::Kind::Completed);
}

TEST(StreamWaitEvent, MeansTheRecordingThatWasTheLatestWhenItWasCalled) {
  const Timeline t = predict(kTwoStreams + R"(
threads:
  main:
    - spin: {stream: a, duration: 10us}
    - event_record: {stream: a, event: e}
    - stream_wait_event: {stream: b, event: e}
    - spin: {stream: a, duration: 100us}
    - event_record: {stream: a, event: e}
    - spin: {id: l, stream: b, duration: 10us}
)");
  EXPECT_EQ(us(device_spans(t, "l")[0].begin_ns), 12) << "not 112: the second record came later";
}

TEST(EventSynchronize, ReturnsWhenThatPointOfTheStreamIsReached) {
  const Timeline t = predict(kTwoStreams + R"(
threads:
  main:
    - spin: {stream: a, duration: 10us}
    - event_record: {stream: a, event: e}
    - spin: {stream: a, duration: 100us}
    - event_synchronize: {id: s, event: e}
)");
  EXPECT_EQ(us(host_spans(t, "s")[0].end_ns), 13);
}

TEST(DeviceSynchronize, WaitsForAllStreams) {
  const Timeline t = predict(kTwoStreams + R"(
threads:
  main:
    - spin: {stream: a, duration: 10us}
    - spin: {stream: b, duration: 50us}
    - device_synchronize: {id: s}
)");
  EXPECT_EQ(us(host_spans(t, "s")[0].end_ns), 54) << "second kernel 3..53";
}

TEST(LaunchQueue, HoldsTheHostWhenItIsFull) {
  Machine machine = unit_machine();
  machine.set(Param::LaunchQueueDepth, {2, 0, ParameterClass::Assumed, "", ""});
  const Timeline t = predict(kTwoStreams + R"(
threads:
  main:
    - spin: {stream: a, duration: 10us}
    - spin: {stream: a, duration: 10us}
    - spin: {id: third, stream: a, duration: 10us}
)",
                             machine);
  // The first kernel ends at 12 and makes room; the call itself takes 1 us.
  EXPECT_EQ(us(host_spans(t, "third")[0].begin_ns), 2);
  EXPECT_EQ(us(host_spans(t, "third")[0].end_ns), 13);
}

TEST(Kernels, ShareTheSmsInOrderOfArrival) {
  // 10 SMs: the first takes 6; the second wants 8 and gets 4. Its other four blocks begin when the
  // first kernel ends, at 12.
  const Timeline t = predict(kTwoStreams + R"(
threads:
  main:
    - spin: {id: k, stream: a, duration: 10us, blocks: 6}
    - spin: {id: l, stream: b, duration: 10us, blocks: 8}
)");
  EXPECT_EQ(us(device_spans(t, "k")[0].end_ns), 12);
  EXPECT_EQ(us(device_spans(t, "l")[0].begin_ns), 3);
  EXPECT_EQ(us(device_spans(t, "l")[0].end_ns), 22);
}

TEST(Kernels, ThatFillTheGpuRunOneAfterTheOther) {
  const Timeline t = predict(kTwoStreams + R"(
threads:
  main:
    - spin: {id: k, stream: a, duration: 10us, blocks: 10}
    - spin: {id: l, stream: b, duration: 10us, blocks: 10}
)");
  EXPECT_EQ(us(device_spans(t, "l")[0].begin_ns), 12);
  EXPECT_EQ(us(device_spans(t, "l")[0].end_ns), 22);
}

TEST(Kernels, ShareMemoryBandwidth) {
  // Two kernels of one SM each that move 10000 bytes at 1000 bytes/us: alone 10 us each.
  Machine machine = unit_machine();
  machine.set(Param::SmCount, {1000, 0, ParameterClass::Assumed, "", ""});
  const Timeline t = predict(R"(
devices: 1
streams: {a: {flags: non_blocking}, b: {flags: non_blocking}}
buffers: {x: {memory: device, size: 10000B}, y: {memory: device, size: 10000B}}
threads:
  main:
    - memset_async: {id: k, stream: a, dst: x}
    - device_synchronize: {}
    - memset_async: {id: l, stream: b, dst: y}
)",
                             machine);
  EXPECT_EQ(us(device_spans(t, "k")[0].end_ns - device_spans(t, "k")[0].begin_ns), 10);
  EXPECT_EQ(us(device_spans(t, "l")[0].end_ns - device_spans(t, "l")[0].begin_ns), 10);
}

TEST(HostThreads, MeetAtABarrierAndPassSignals) {
  const Timeline t = predict(R"(
signals: {go: {}}
threads:
  fast:
    - host_barrier: {}
    - host_wait: {id: w, signal: go}
  slow:
    - host_compute: {duration: 20us}
    - host_barrier: {id: last}
    - host_compute: {duration: 5us}
    - host_signal: {signal: go}
)");
  // barrier: all leave at 21; the signal is given at 26 and received 1 us later
  EXPECT_EQ(us(host_spans(t, "last")[0].end_ns), 21);
  EXPECT_EQ(us(host_spans(t, "w")[0].end_ns), 27);
}

TEST(EventElapsedTime, IsAResultOfItsNameAndIncludesWaiting) {
  const Timeline t = predict(R"(
streams: {a: {flags: non_blocking}, b: {flags: non_blocking}}
events: {start: {}, stop: {}, other: {}}
threads:
  main:
    - spin: {stream: b, duration: 100us}
    - event_record: {stream: b, event: other}
    - event_record: {stream: a, event: start}
    - stream_wait_event: {stream: a, event: other}
    - spin: {stream: a, duration: 10us}
    - event_record: {stream: a, event: stop}
    - event_elapsed_time: {start: start, end: start}
    - event_synchronize: {event: stop}
    - event_elapsed_time: {id: elapsed, start: start, end: stop}
)");
  // b's kernel 2..102; start completes at 3; a's kernel 102..112
  ASSERT_EQ(t.regions.size(), 1U) << "without an id it is no result";
  EXPECT_EQ(region_us(t, "elapsed"), 109);
  EXPECT_GE(t.regions[0].high_factor, 1);
}

TEST(EventQuery, OfACompletedEventIsLongerUntilTheHostHasSeenLaterWorkEnd) {
  Machine machine = unit_machine();
  machine.set(Param::HostQueryLater, {3e-6, 0, ParameterClass::Assumed, "", ""});
  const Timeline t = predict(R"(
streams: {a: {flags: non_blocking}, b: {flags: non_blocking}}
events: {e: {}, later: {}, after_it: {}}
threads:
  main:
    - spin: {stream: a, duration: 10us}
    - event_record: {stream: a, event: e}
    - event_query: {id: pending, event: e}
    - host_compute: {duration: 20us}
    - event_record: {stream: a, event: after_it}
    - event_query: {id: alone, event: e}
    - spin: {stream: b, duration: 10us}
    - event_query: {id: beside, event: e}
    - host_compute: {duration: 20us}
    - event_query: {id: not_seen, event: e}
    - event_record: {stream: b, event: later}
    - event_synchronize: {event: later}
    - event_query: {id: seen, event: e}
    - spin: {stream: a, duration: 10us}
    - device_synchronize: {}
    - event_query: {id: synchronized, event: e}
)",
                             machine);
  EXPECT_EQ(host_us(t, "pending"), 1);
  EXPECT_EQ(host_us(t, "alone"), 1) << "a record is no work";
  EXPECT_EQ(host_us(t, "beside"), 4) << "on whichever stream";
  EXPECT_EQ(host_us(t, "not_seen"), 4) << "it has ended, and nothing told the host";
  EXPECT_EQ(host_us(t, "seen"), 1);
  EXPECT_EQ(host_us(t, "synchronized"), 1);
}

}  // namespace
}  // namespace foretrace::test
