// What host threads of one process wait for each other. A call takes 1 us, nothing else.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

const std::string kTurnObjects = R"(
streams: {a: {flags: non_blocking}, b: {flags: non_blocking}}
events: {e: {count: 2}}
)";

/// Until both of two threads have made ten calls `one` and `two`.
double both_make(const std::string& one, const std::string& two) {
  const Timeline t = predict(kTurnObjects + fmt::format(R"(
threads:
  first: [repeat: {{times: 10, ops: [{}]}}]
  second: [repeat: {{times: 10, ops: [{}]}}]
)",
                                                        one, two));
  std::int64_t end = 0;
  for (const std::string id : {"c", "d"}) {
    end = std::max(end, host_spans(t, id).back().end_ns);
  }
  return us(end);
}

TEST(Calls, OfTwoThreadsOnOneStreamTakeTurns) {
  EXPECT_EQ(both_make("{spin: {id: c, stream: a, duration: 1us}}",
                      "{spin: {id: d, stream: a, duration: 1us}}"),
            20);
  EXPECT_EQ(both_make("{spin: {id: c, stream: a, duration: 1us}}",
                      "{spin: {id: d, stream: b, duration: 1us}}"),
            10);
}

TEST(Calls, OfDifferentKindsOnOneStreamTakeTurnsToo) {
  EXPECT_EQ(both_make("{event_record: {id: c, stream: a, event: e(0)}}",
                      "{spin: {id: d, stream: a, duration: 1us}}"),
            20);
}

TEST(PoolCalls, OfTwoThreadsTakeTurns) {
  const Timeline t = predict(R"(
streams: {s: {count: 2, flags: non_blocking}}
buffers: {x: {memory: device, size: 1KiB, count: 2}}
threads:
  first: [repeat: {times: 10, ops: [{malloc_async: {stream: s(0), buffer: x(0)}}, {free_async: {id: c, stream: s(0), buffer: x(0)}}]}]
  second: [repeat: {times: 10, ops: [{malloc_async: {stream: s(1), buffer: x(1)}}, {free_async: {id: d, stream: s(1), buffer: x(1)}}]}]
)");
  EXPECT_NEAR(us(std::max(host_spans(t, "c").back().end_ns, host_spans(t, "d").back().end_ns)), 40,
              0.1)
      << "and the pool that grows";
}

/// When `call` of another thread ends, and a launch that begins 50 us into it.
std::pair<double, double> launch_beside(const std::string& call) {
  const Timeline t = predict(fmt::format(R"(
warmup: 0
streams: {{a: {{flags: non_blocking}}, b: {{flags: non_blocking}}}}
buffers: {{pinned: {{memory: pinned, size: 64MiB}}, x: {{memory: device, size: 64MiB}},
          a: {{memory: pageable, size: 64MiB}}, b: {{memory: pageable, size: 64MiB}}}}
threads:
  other:
    - spin: {{stream: a, duration: 5ms}}
    - host_barrier: {{}}
    - {}
  launches:
    - host_barrier: {{}}
    - host_compute: {{duration: 50us}}
    - spin: {{id: late, stream: b, duration: 1us}}
)",
                                         call),
                             load_machine("h200-nvswitch-8"));
  return {us(host_spans(t, "c").at(0).end_ns), us(host_spans(t, "late").at(0).end_ns)};
}

TEST(HostAlloc, OfAnotherThreadHoldsLaunchesUp) {
  const auto [allocated, launched] = launch_beside("host_alloc: {id: c, buffer: pinned}");
  EXPECT_GT(launched, allocated);
}

TEST(Free, ThatWaitsForItsDeviceLetsNobodyLaunch) {
  const auto [freed, launched] = launch_beside("free: {id: c, buffer: x}");
  EXPECT_GT(freed, 5000);
  EXPECT_GT(launched, 5000);
}

TEST(Memcpy, WithinTheHostHoldsLaunchesUp) {
  const auto [copied, launched] = launch_beside("memcpy: {id: c, src: a, dst: b}");
  EXPECT_GT(launched, copied);
}

/// When the last of `reduces` ends that both ranks call while one of them pins memory.
double reduced_beside_pinning(const std::string& reduces) {
  const Timeline t = predict(fmt::format(R"(
warmup: 0
processes: 2
streams: {{s: {{flags: non_blocking}}}}
communicators: {{world: {{members: all_devices, init: rank}}}}
buffers: {{pinned: {{memory: pinned, size: 64MiB}}, x: {{memory: device, size: 1KiB}}}}
threads:
  pins: {{process: 0, ops: [{{host_barrier: {{name: connected}}}}, {{host_alloc: {{buffer: pinned}}}}]}}
  reduces:
    - nccl_all_reduce: {{comm: world, stream: s, buffer: x, type: float32}}
    - stream_synchronize: {{stream: s}}
    - when: {{condition: process == 0, ops: [{{host_barrier: {{name: connected}}}}]}}
    - host_compute: {{duration: 50us}}
    - region: {{name: reduces, ops: [{}, {{stream_synchronize: {{stream: s}}}}]}}
)",
                                         reduces),
                             load_machine("h200-nvswitch-8"));
  return region_us(t, "reduces");
}

const std::string kReduce = "{nccl_all_reduce: {comm: world, stream: s, buffer: x, type: float32}}";

TEST(HostAlloc, OfAnotherThreadHoldsNcclUp) { EXPECT_GT(reduced_beside_pinning(kReduce), 5000); }

TEST(HostAlloc, OfAnotherThreadHoldsAGroupUpAtItsEnd) {
  EXPECT_GT(reduced_beside_pinning("{nccl_group: {ops: [" + kReduce + ", " + kReduce + "]}}"),
            5000);
}

TEST(Malloc, BesideAFreeThatWaitsDoesToo) {
  const Timeline t = predict(R"(
warmup: 0
streams: {a: {flags: non_blocking}}
buffers: {x: {memory: device, size: 1MiB}, y: {memory: device, size: 64MiB}}
threads:
  frees:
    - spin: {stream: a, duration: 5ms}
    - host_barrier: {}
    - free: {buffer: x}
  allocates:
    - host_barrier: {}
    - host_compute: {duration: 50us}
    - malloc: {id: late, buffer: y}
)",
                             load_machine("h200-nvswitch-8"));
  EXPECT_GT(us(host_spans(t, "late").at(0).end_ns), 5000);
}

/// When a launch on this device ends that begins while another thread pins memory for device 0.
double launch_beside_pinning(int device) {
  const Timeline t = predict(fmt::format(R"(
warmup: 0
devices: 2
streams: {{s: {{device: {}, flags: non_blocking}}}}
buffers: {{pinned: {{memory: pinned, size: 64MiB}}}}
threads:
  pins: [{{host_barrier: {{}}}}, {{host_alloc: {{buffer: pinned}}}}]
  launches:
    - host_barrier: {{}}
    - host_compute: {{duration: 50us}}
    - spin: {{id: late, stream: s, duration: 1us}}
)",
                                         device),
                             load_machine("h200-nvswitch-8"));
  return us(host_spans(t, "late").at(0).end_ns);
}

TEST(HostAlloc, HoldsTheContextOfItsOwnDevice) {
  EXPECT_GT(launch_beside_pinning(0), 5000);
  EXPECT_LT(launch_beside_pinning(1), 200);
}

TEST(Fault, IsReportedByACallThatWaitedForTheContext) {
  const Timeline t = predict(R"(
warmup: 0
streams: {a: {flags: non_blocking}, b: {flags: non_blocking}}
buffers: {pinned: {memory: pinned, size: 64MiB}}
threads:
  pins: [{host_barrier: {}}, {host_alloc: {buffer: pinned}}]
  launches:
    - fault: {stream: a}
    - host_barrier: {}
    - host_compute: {duration: 50us}
    - spin: {stream: b, duration: 1us}
    - stream_synchronize: {stream: b}
)",
                             load_machine("h200-nvswitch-8"));
  ASSERT_EQ(t.outcome.explanation.size(), 1U);
  EXPECT_NE(t.outcome.explanation[0].find("an illegal memory access"), std::string::npos);
}

TEST(Memcpy, WithinTheHostWaitsForTheLegacyStream) {
  const Timeline t = predict(R"(
warmup: 0
buffers: {a: {memory: pageable, size: 4KiB}, b: {memory: pageable, size: 4KiB}}
threads:
  main:
    - spin: {duration: 5ms}
    - memcpy: {id: c, src: a, dst: b}
)",
                             load_machine("h200-nvswitch-8"));
  EXPECT_GT(us(host_spans(t, "c").at(0).end_ns), 5000);
}

TEST(StreamSynchronize, LetsOthersLaunch) {
  EXPECT_LT(launch_beside("stream_synchronize: {id: c, stream: a}").second, 200);
}

TEST(StreamQuery, OfAnIdleStreamLooksAtTheOthersWork) {
  const Timeline t = predict(kTurnObjects + R"(
threads:
  main:
    - spin: {stream: a, duration: 500us}
    - repeat: {times: 2, ops: [{stream_query: {id: busy, stream: a}}]}
    - repeat: {times: 2, ops: [{stream_query: {id: idle, stream: b}}]}
    - device_synchronize: {}
    - repeat: {times: 2, ops: [{stream_query: {id: alone, stream: b}}]}
)",
                             load_machine("h200-nvswitch-8"));
  const auto second = [&t](const std::string& id) {
    const Span span = host_spans(t, id).at(1);
    return us(span.end_ns - span.begin_ns);
  };
  EXPECT_GT(second("idle"), 3 * second("busy"));
  EXPECT_EQ(second("alone"), second("busy"));
}

/// The second query of an event that has completed, behind `wait`.
double completed_query(const std::string& timing, const std::string& wait) {
  const Timeline t = predict(fmt::format(R"(
streams: {{a: {{flags: non_blocking}}}}
events: {{e: {{timing: {}}}}}
threads:
  main:
    - spin: {{stream: a, duration: 10us}}
    - event_record: {{event: e, stream: a}}
    - {}
    - repeat: {{times: 2, ops: [{{event_query: {{id: q, event: e}}}}]}}
)",
                                         timing, wait),
                             load_machine("h200-nvswitch-8"));
  const Span span = host_spans(t, "q").at(1);
  return us(span.end_ns - span.begin_ns);
}

TEST(EventQuery, OfAnEventWithoutATimeLooksFurtherUntilSomebodyHasWaited) {
  const std::string pause = "host_compute: {duration: 1ms}";
  const double timed = completed_query("true", pause);
  EXPECT_GT(completed_query("false", pause), 3 * timed);
  EXPECT_EQ(completed_query("false", "event_synchronize: {event: e}"), timed);
}

}  // namespace
}  // namespace foretrace::test
