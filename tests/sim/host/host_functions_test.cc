// Host functions, and errors that surface later. Times add up from tests/sim/unit_machine.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

using testing::HasSubstr;

const std::string kHostFunctionStreams =
    "streams: {a: {flags: non_blocking}, b: {flags: non_blocking}}\n";

TEST(HostFunction, HoldsItsStreamButNotTheHostThread) {
  const Timeline t = predict(kHostFunctionStreams + R"(
threads:
  main:
    - host_func: {id: f, stream: a, duration: 20us}
    - spin: {id: k, stream: a, duration: 10us}
    - spin: {id: l, stream: b, duration: 10us}
)");
  EXPECT_EQ(us(device_spans(t, "f")[0].begin_ns), 1);
  EXPECT_EQ(us(device_spans(t, "f")[0].end_ns), 21);
  EXPECT_EQ(us(device_spans(t, "k")[0].begin_ns), 21);
  EXPECT_EQ(us(device_spans(t, "l")[0].begin_ns), 4);
}

TEST(HostFunction, OfAnotherStreamRunsOnlyAfterTheFirst) {
  const Timeline t = predict(kHostFunctionStreams + R"(
threads:
  main:
    - host_func: {id: f, stream: a, duration: 20us}
    - host_func: {id: g, stream: b, duration: 20us}
)");
  EXPECT_EQ(device_spans(t, "g")[0].begin_ns, device_spans(t, "f")[0].end_ns);
}

TEST(HostFunction, TakesFromASemaphoreAndGivesToOne) {
  const Timeline t = predict(kHostFunctionStreams + R"(
signals: {go: {}, done: {}}
threads:
  main:
    - host_func: {id: f, stream: a, duration: 5us, wait: go, signal: done}
    - host_compute: {duration: 99us}
    - host_signal: {signal: go}
    - host_wait: {id: waited, signal: done}
)");
  EXPECT_EQ(us(device_spans(t, "f")[0].end_ns), 105);
  EXPECT_EQ(us(host_spans(t, "waited")[0].end_ns), 106);
}

TEST(HostFunction, ThatWaitsForItsOwnThreadBehindAFullQueueIsADeadlockThatIsExplained) {
  const Timeline t = predict(kHostFunctionStreams + R"(
signals: {go: {}}
threads:
  main:
    - host_func: {stream: a, wait: go}
    - repeat: {times: 1100, ops: [{spin: {stream: a, duration: 1us}}]}
    - host_signal: {signal: go}
)");
  EXPECT_EQ(t.outcome.kind, Outcome::Kind::Deadlock);
  ASSERT_FALSE(t.outcome.explanation.empty());
  EXPECT_THAT(t.outcome.explanation[0], HasSubstr("room in the full launch queue of stream a"));
  EXPECT_THAT(t.outcome.explanation[0], HasSubstr("waits for a signal that no thread gives"));
}

TEST(HostFunction, ThatNobodyReleasesIsFoundOnAPerThreadStreamThatNobodyWaitsFor) {
  const Timeline t = predict(R"(
signals: {go: {}}
threads:
  main: [{host_func: {stream: per_thread, wait: go}}]
)");
  EXPECT_EQ(t.outcome.kind, Outcome::Kind::Deadlock);
}

TEST(Fault, SurfacesWhereTheHostWaitsNext) {
  const Timeline t = predict(kHostFunctionStreams + R"(
threads:
  main:
    - fault: {stream: a}
    - host_compute: {duration: 50us}
    - spin: {stream: b, duration: 1us}
    - stream_synchronize: {id: s, stream: b}
    - host_compute: {id: never, duration: 1us}
)");
  EXPECT_EQ(t.outcome.kind, Outcome::Kind::Failed);
  ASSERT_EQ(t.outcome.explanation.size(), 1U);
  EXPECT_THAT(t.outcome.explanation[0], HasSubstr("stream_synchronize: an illegal memory access"));
  EXPECT_TRUE(host_spans(t, "never").empty());
}

}  // namespace
}  // namespace foretrace::test
