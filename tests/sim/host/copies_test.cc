// Copies: engines, routes, and how far the host takes part. 1000 bytes per us on every route.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

const std::string kObjects = R"(
streams: {a: {flags: non_blocking}, b: {flags: non_blocking}}
buffers:
  pinned:   {memory: pinned, size: 1MB, count: 2}
  pageable: {memory: pageable, size: 1MB}
  x:        {memory: device, size: 1MB, count: 2}
)";

TEST(MemcpyAsync, FromPinnedMemoryReturnsAtOnce) {
  const Timeline t = predict(kObjects + R"(
threads:
  main:
    - memcpy_async: {id: c, stream: a, src: pinned(0), dst: x(0), size: 10000B}
)");
  EXPECT_EQ(us(host_spans(t, "c")[0].end_ns), 1);
  EXPECT_EQ(us(device_spans(t, "c")[0].begin_ns), 2);
  EXPECT_EQ(us(device_spans(t, "c")[0].end_ns), 12);
}

TEST(Memcpy, BetweenHostBuffersWaitsForAnotherThreadsToEnd) {
  const Timeline t = predict(kObjects + R"(
threads:
  one: [memcpy: {id: first, src: pageable, dst: pinned(0), size: 10000B}]
  two: [memcpy: {id: second, src: pageable, dst: pinned(1), size: 10000B}]
)");
  const Span first = host_spans(t, "first")[0];
  const Span second = host_spans(t, "second")[0];
  const auto alone = first.end_ns - first.begin_ns;
  EXPECT_EQ(second.begin_ns, first.begin_ns);
  EXPECT_GE(second.end_ns, first.end_ns + alone);
}

TEST(MemcpyAsync, OfOneChunkAfterTheOtherFindsNoneOfThemInTheCache) {
  const Timeline t = predict(R"(
streams: {s: {flags: non_blocking}}
buffers:
  a: {memory: pageable, size: 7MB}
  b: {memory: pageable, size: 7MB}
  x: {memory: device, size: 7MB}
threads:
  main:
    - memcpy: {src: x, dst: a}
    - memcpy: {src: x, dst: b}
    - repeat:
        index: i
        times: 10
        ops: [{memcpy_async: {id: each, stream: s, src: a, dst: x, size: 700000B, src_offset: i * 700000B}}]
    - stream_synchronize: {stream: s}
    - repeat: {times: 10, ops: [{memcpy_async: {id: same, stream: s, src: b, dst: x, size: 700000B}}]}
    - stream_synchronize: {stream: s}
)",
                             load_machine("h200-nvswitch-8"));
  const auto of_all = [&t](const std::string& id) {
    const auto spans = device_spans(t, id);
    return static_cast<double>(spans.back().end_ns - spans.front().begin_ns);
  };
  EXPECT_GT(of_all("each"), 1.3 * of_all("same"));
}

TEST(MemcpyAsync, FindsPageableMemoryOutOfTheCacheAfterHostFree) {
  const Timeline t = predict(R"(
warmup: 0
streams: {s: {flags: non_blocking}}
buffers:
  pageable: {memory: pageable, size: 7MB}
  pinned: {memory: pinned, size: 4KiB}
  x: {memory: device, size: 7MB}
threads:
  main:
    - host_alloc: {buffer: pinned}
    - repeat: {times: 4, ops: [{memcpy_async: {id: before, stream: s, src: pageable, dst: x}}]}
    - host_free: {buffer: pinned}
    - repeat: {times: 2, ops: [{memcpy_async: {id: behind, stream: s, src: pageable, dst: x}}]}
)",
                             load_machine("h200-nvswitch-8"));
  const auto took = [&t](const char* id, std::size_t copy) {
    const Span call = host_spans(t, id)[copy];
    return us(call.end_ns - call.begin_ns);
  };
  EXPECT_GT(took("behind", 0), 1.3 * took("before", 3));
  EXPECT_NEAR(took("behind", 1), took("before", 3), 5);
}

/// What the first upload from `count` pageable buffers of 7 MB takes, each read `times` times a
/// pass.
double first_upload_us(int count, int times) {
  const Timeline t = predict(fmt::format(R"(
streams: {{s: {{flags: non_blocking}}}}
buffers:
  pageable: {{memory: pageable, size: 7MB, count: {}}}
  x: {{memory: device, size: 7MB}}
threads:
  main:
    - for_each:
        index: i
        in: {}
        ops: [{{repeat: {{times: {}, ops: [{{memcpy: {{id: up, src: pageable(i), dst: x}}}}]}}}}]
)",
                                         count, count, times),
                             load_machine("h200-nvswitch-8"));
  const Span call = host_spans(t, "up")[0];
  return us(call.end_ns - call.begin_ns);
}

// 7 MB from the cache at 15.5 GB/s, from memory at 9.3, and what the call takes.
constexpr double kFromCacheUs = 460;
constexpr double kFromMemoryUs = 766;

TEST(Memcpy, FindsInTheNextPassWhatAPassHasReadOnceWhereThatIsLittle) {
  EXPECT_NEAR(first_upload_us(5, 1), kFromCacheUs, 10) << "35 MB of the 40 MiB that are kept";
}

TEST(Memcpy, FindsInMemoryWhatAPassHasReadOnceOfMuch) {
  EXPECT_NEAR(first_upload_us(7, 1), kFromMemoryUs, 10);
}

TEST(Memcpy, FindsInTheNextPassWhatAPassHasReadOftenerThanTwice) {
  EXPECT_NEAR(first_upload_us(7, 3), kFromCacheUs, 10);
}

TEST(Memcpy, ByTheHostFindsInMemoryWhatAGpuHasWritten) {
  const Timeline t = predict(R"(
streams: {s: {flags: non_blocking}}
buffers:
  staging: {memory: pinned, size: 7MB}
  file: {memory: pageable, size: 7MB}
  x: {memory: device, size: 7MB}
threads:
  main:
    - repeat: {times: 4, ops: [{memcpy: {id: again, src: staging, dst: file}}]}
    - repeat:
        times: 4
        ops:
          - memcpy_async: {stream: s, src: x, dst: staging}
          - stream_synchronize: {stream: s}
          - memcpy: {id: written, src: staging, dst: file}
)",
                             load_machine("h200-nvswitch-8"));
  const auto took = [&t](const char* id, std::size_t copy) {
    const Span call = host_spans(t, id)[copy];
    return static_cast<double>(call.end_ns - call.begin_ns);
  };
  EXPECT_GT(took("written", 3), 1.2 * took("again", 3));
}

Machine unit_machine_where(Param param, double value) {
  Machine machine = unit_machine();
  ParamValue changed = machine.get(param);
  changed.value = value;
  machine.set(param, changed);
  return machine;
}

TEST(CopyEngine, TakesLongerToReadMemoryThatKernelsUse) {
  const Timeline t = predict(kObjects + R"(
threads:
  main:
    - elementwise: {stream: b, src: x(0), dst: x(1)}
    - memcpy_async: {id: beside, stream: a, src: x(0), dst: pinned(0), size: 10000B}
    - device_synchronize: {}
    - memcpy_async: {id: alone, stream: a, src: x(0), dst: pinned(0), size: 10000B}
)",
                             unit_machine_where(Param::SaturatedCopy, 5e-6));
  const auto took = [&](const char* id) {
    const Span span = device_spans(t, id)[0];
    return us(span.end_ns - span.begin_ns);
  };
  EXPECT_EQ(took("alone"), 10);
  EXPECT_EQ(took("beside"), 15);
}

TEST(CopyEngine, BeginsLaterBesideKernelsThatUseTheMemoryWhereItsStreamWasIdle) {
  const Timeline t = predict(kObjects + R"(
threads:
  main:
    - elementwise: {stream: b, src: x(0), dst: x(1)}
    - memcpy_async: {id: first, stream: a, src: x(0), dst: pinned(0), size: 10000B}
    - memcpy_async: {id: next, stream: a, src: x(0), dst: pinned(0), size: 10000B}
)",
                             unit_machine_where(Param::SaturatedCopyIdle, 5e-6));
  const Span first = device_spans(t, "first")[0];
  const Span next = device_spans(t, "next")[0];
  EXPECT_EQ(us(first.begin_ns - host_spans(t, "first")[0].end_ns), 6) << "1 us as always";
  EXPECT_EQ(us(first.end_ns - first.begin_ns), 10);
  EXPECT_EQ(next.begin_ns, first.end_ns);
}

TEST(CopyEngine, TakesLongerToTheHostWhileAnotherBringsDataFromThere) {
  const Timeline t = predict(kObjects + R"(
threads:
  main:
    - memcpy_async: {stream: a, src: pinned(0), dst: x(0), size: 10000B}
    - memcpy_async: {id: beside, stream: b, src: x(1), dst: pinned(1), size: 1000B}
    - device_synchronize: {}
    - memcpy_async: {id: alone, stream: b, src: x(1), dst: pinned(1), size: 1000B}
)",
                             unit_machine_where(Param::DuplexCopy, 5e-6));
  const auto took = [&](const char* id) {
    const Span span = device_spans(t, id)[0];
    return us(span.end_ns - span.begin_ns);
  };
  EXPECT_EQ(took("beside") - took("alone"), 5);
}

TEST(CopyEngine, RunsOneHostToDeviceCopyAtATime) {
  const Timeline t = predict(kObjects + R"(
threads:
  main:
    - memcpy_async: {id: c, stream: a, src: pinned(0), dst: x(0), size: 10000B}
    - memcpy_async: {id: d, stream: b, src: pinned(1), dst: x(1), size: 10000B}
)");
  EXPECT_EQ(us(device_spans(t, "d")[0].begin_ns), 12);
  EXPECT_EQ(us(device_spans(t, "d")[0].end_ns), 22);
}

TEST(CopyEngine, MovesBothDirectionsAtOnce) {
  const Timeline t = predict(kObjects + R"(
threads:
  main:
    - memcpy_async: {id: c, stream: a, src: pinned(0), dst: x(0), size: 10000B}
    - memcpy_async: {id: d, stream: b, src: x(1), dst: pinned(1), size: 10000B}
)");
  EXPECT_EQ(us(device_spans(t, "d")[0].begin_ns), 3);
  EXPECT_EQ(us(device_spans(t, "d")[0].end_ns), 13);
}

TEST(CopyEngine, ThatIsTheOnlyOneMovesOneDirectionAtATime) {
  Machine machine = unit_machine();
  machine.set(Param::CopyEngines, {1, 0, ParameterClass::Assumed, "", ""});
  const Timeline t = predict(kObjects + R"(
threads:
  main:
    - memcpy_async: {id: c, stream: a, src: pinned(0), dst: x(0), size: 10000B}
    - memcpy_async: {id: d, stream: b, src: x(1), dst: pinned(1), size: 10000B}
)",
                             machine);
  EXPECT_EQ(us(device_spans(t, "d")[0].begin_ns), 12) << "the first copy ends at 12";
}

TEST(Memcpy, WaitsForTheCopyExceptInsideADevice) {
  const Timeline t = predict(kObjects + R"(
threads:
  main:
    - memcpy: {id: c, src: pinned(0), dst: x(0), size: 10000B}
    - memcpy: {id: d, src: x(0), dst: x(1), size: 10000B}
)");
  EXPECT_EQ(us(host_spans(t, "c")[0].end_ns), 13) << "copy 2..12, wake 1";
  EXPECT_EQ(us(host_spans(t, "d")[0].end_ns), 14) << "the call alone";
}

TEST(ReadScalar, IsAHostDeviceSynchronization) {
  const Timeline t = predict(kObjects + R"(
threads:
  main:
    - spin: {stream: default, duration: 100us}
    - region: {name: read, ops: [read_scalar: {src: x(0)}]}
)");
  EXPECT_GT(region_us(t, "read"), 100);
}

/// Clears at 1000 bytes per us what was freed; a second thread holds a call up by its own time.
Machine busy_driver() {
  Machine machine = unit_machine();
  machine.set(Param::HostClearBandwidth, {1e9, 0, ParameterClass::Assumed, "", ""});
  machine.set(Param::HostContention, {1, 0, ParameterClass::Assumed, "", ""});
  return machine;
}

TEST(Free, LetsItsMemoryBeClearedOnceTheKernelsHaveEnded) {
  const Timeline t = predict(R"(
warmup: 0
streams: {a: {flags: non_blocking}}
buffers: {x: {memory: device, size: 300000B}, y: {memory: device, size: 8B}}
threads:
  main:
    - spin: {id: k, stream: a, duration: 500us}
    - free: {id: f, buffer: x}
    - malloc: {id: m, buffer: y}
)",
                             busy_driver());
  const double ended = us(device_spans(t, "k")[0].end_ns);
  EXPECT_GE(us(host_spans(t, "f")[0].end_ns), ended);
  EXPECT_GE(us(host_spans(t, "m")[0].end_ns), ended + 300) << "300 us to clear 300 kB";
  EXPECT_LE(us(host_spans(t, "m")[0].end_ns), ended + 310);
}

/// Of ten launches beside those of another thread, which are for this device.
double ten_launches_beside(const std::string& device) {
  const Timeline t = predict(
      "devices: 2\nstreams: {a: {flags: non_blocking}, b: {flags: non_blocking, device: " + device +
          R"(}}
threads:
  one:
    - host_barrier: {}
    - repeat: {times: 10, ops: [{spin: {id: k, stream: a, duration: 1us}}]}
  two:
    - host_barrier: {}
    - repeat: {times: 10, ops: [{spin: {stream: b, duration: 1us}}]}
)",
      busy_driver());
  const auto calls = host_spans(t, "k");
  return us(calls.back().end_ns - calls.front().begin_ns);
}

TEST(Calls, OfThreadsForOneGpuHoldEachOtherUp) { EXPECT_GE(ten_launches_beside("0"), 15); }

TEST(Calls, OfThreadsForDifferentGpusDoNotHoldEachOtherUp) {
  EXPECT_LE(ten_launches_beside("1"), 12);
}

}  // namespace
}  // namespace foretrace::test
