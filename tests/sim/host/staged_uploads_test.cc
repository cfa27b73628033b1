// Uploads from pageable memory: what the host stages, and when the call returns. 1000 bytes per us
// on every route.
#include <gtest/gtest.h>

#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

const std::string kUploads = R"(
streams: {a: {flags: non_blocking}, b: {flags: non_blocking}}
buffers:
  pageable: {memory: pageable, size: 1MB}
  x:        {memory: device, size: 1MB, count: 2}
)";

TEST(MemcpyAsync, FromPageableMemoryHoldsTheHostUntilItIsStaged) {
  const Timeline t = predict(kUploads + R"(
threads:
  main:
    - memcpy_async: {id: c, stream: a, src: pageable, dst: x(0), size: 100000B}
)");
  EXPECT_EQ(us(host_spans(t, "c")[0].end_ns), 100);
  EXPECT_EQ(us(device_spans(t, "c")[0].end_ns), 201) << "one piece: it goes on when all is staged";
}

TEST(MemcpyAsync, FromPageableMemoryGoesOnPieceByPiece) {
  const Timeline t = predict(R"(
streams: {a: {flags: non_blocking}}
buffers:
  pageable: {memory: pageable, size: 4MiB}
  x:        {memory: device, size: 4MiB}
threads:
  main:
    - memcpy_async: {id: c, stream: a, src: pageable, dst: x, size: 4MiB}
)");
  constexpr double kPieceUs = 1048.576;
  EXPECT_NEAR(us(host_spans(t, "c")[0].end_ns), 4 * kPieceUs, 1);
  EXPECT_NEAR(us(device_spans(t, "c")[0].begin_ns), kPieceUs, 2);
  EXPECT_NEAR(us(device_spans(t, "c")[0].end_ns), 5 * kPieceUs, 2);
}

TEST(Memcpy, FromPageableMemoryReturnsWhenItIsStagedAndTheNextOneWaitsForTheCopy) {
  const Timeline t = predict(kUploads + R"(
threads:
  main:
    - memcpy: {id: c, src: pageable, dst: x(0), size: 100000B}
    - memcpy: {id: d, src: pageable, dst: x(1), size: 100000B}
)");
  EXPECT_EQ(us(host_spans(t, "c")[0].end_ns), 100);
  EXPECT_EQ(us(device_spans(t, "c")[0].end_ns), 201);
  EXPECT_EQ(us(host_spans(t, "d")[0].end_ns), 302) << "it begins when the host has seen that end";
}

TEST(MemcpyAsync, OfSmallPageableMemoryTravelsWithTheCall) {
  const Timeline t = predict(kUploads + R"(
threads:
  main:
    - spin: {stream: a, duration: 500us}
    - memcpy_async: {id: c, stream: a, src: pageable, dst: x(0), size: 10000B}
)");
  EXPECT_EQ(us(host_spans(t, "c")[0].end_ns), 11)
      << "the host copies 10 us and does not wait for the kernel";
}

Machine staging() {
  Machine machine = unit_machine();
  ParamValue size = machine.get(Param::StagedUpload);
  size.value = 200'000;
  machine.set(Param::StagedUpload, size);
  return machine;
}

TEST(MemcpyAsync, FromPageableMemoryIsStagedBehindAKernelAndTheNextOneWaitsForIt) {
  const Timeline t = predict(kUploads + R"(
threads:
  main:
    - spin: {stream: a, duration: 500us}
    - memcpy_async: {id: c, stream: a, src: pageable, dst: x(0), size: 100000B}
    - memcpy_async: {id: d, stream: a, src: pageable, dst: x(1), size: 100000B}
)",
                             staging());
  EXPECT_EQ(us(host_spans(t, "c")[0].end_ns), 101) << "as long as the host copies";
  EXPECT_EQ(us(device_spans(t, "c")[0].begin_ns), 502) << "the kernel runs from 2 on";
  EXPECT_EQ(us(device_spans(t, "c")[0].end_ns), 602);
  EXPECT_EQ(us(host_spans(t, "d")[0].end_ns), 702) << "100 us behind it";
}

TEST(MemcpyAsync, OfMoreThanTheDriverStagesHoldsTheHostUntilTheCopyHasEnded) {
  const Timeline t = predict(kUploads + R"(
threads:
  main:
    - spin: {stream: a, duration: 500us}
    - memcpy_async: {id: c, stream: a, src: pageable, dst: x(0), size: 300000B}
)",
                             staging());
  // 200 kB are staged by 201 us; behind the kernel they take 200 us, and the rest 100.
  EXPECT_EQ(us(device_spans(t, "c")[0].end_ns), 802);
  EXPECT_EQ(us(host_spans(t, "c")[0].end_ns), 803);
}

TEST(MemcpyAsync, FromPageableMemoryIsStagedWhileTheOneBeforeItGoesOn) {
  const Timeline t = predict(kUploads + R"(
threads:
  main:
    - memcpy_async: {id: c, stream: a, src: pageable, dst: x(0), size: 100000B}
    - memcpy_async: {id: d, stream: a, src: pageable, dst: x(1), size: 100000B}
)",
                             staging());
  EXPECT_EQ(us(host_spans(t, "c")[0].end_ns), 100);
  EXPECT_EQ(us(device_spans(t, "c")[0].end_ns), 201);
  EXPECT_EQ(us(host_spans(t, "d")[0].end_ns), 200) << "it waits for nothing";
}

/// Memory gives the host half of what a copy takes; what reads in a row have brought into the
/// cache, all of it, up to 10 MB, and up to 100 kB of a pass whose parts are read once.
Machine with_cache() {
  Machine machine = unit_machine();
  const auto set = [&](Param param, double value) {
    ParamValue of = machine.get(Param::StagedUpload);
    of.value = value;
    machine.set(param, of);
  };
  set(Param::PageableH2dBandwidth, 5e8);
  set(Param::PageableH2dCached, 1e9);
  set(Param::HostCache, 10e6);
  set(Param::UploadCache, 10e6);
  set(Param::KeptCache, 100e3);
  return machine;
}

/// 04_threads_upload_pageable of blind round written-9: the thread that uploads first goes on.
TEST(MemcpyAsync, OfAThreadThatUploadsOnAndOnKeepsOthersWaiting) {
  Machine machine = with_cache();
  for (const Param link : {Param::H2dBandwidth, Param::DuplexBandwidth}) {
    machine.set(link, {1e12, 0, ParameterClass::Assumed, "", ""});  // staging decides
  }
  const Timeline t = predict(kUploads + R"(
threads:
  one: [{repeat: {times: 3, ops: [{memcpy_async: {id: c, stream: a, src: pageable, dst: x(0), size: 200000B}}]}}]
  other: [{memcpy_async: {id: d, stream: b, src: pageable, dst: x(1), size: 200000B}}]
)",
                             machine);
  const auto on_and_on = host_spans(t, "c");
  ASSERT_EQ(on_and_on.size(), 3U);
  EXPECT_EQ(on_and_on[1].begin_ns, on_and_on[0].end_ns);
  const Span waits = host_spans(t, "d").at(0);
  EXPECT_GT(waits.end_ns, on_and_on[2].end_ns);
}

std::string four_uploads(const std::string& offset) {
  return kUploads + R"(
threads:
  main:
    - repeat:
        index: i
        times: 4
        ops: [{memcpy_async: {id: c, stream: a, src: pageable, dst: x(0), size: 200000B, src_offset: )" +
         offset + "}}]\n";
}

TEST(MemcpyAsync, FindsWhatWasReadInARowInTheCacheOfThePassBefore) {
  EXPECT_EQ(host_us(predict(four_uploads("0B"), with_cache()), "c"), 200);
}

TEST(MemcpyAsync, FindsNoMoreInTheCacheThanUploadsLeaveThere) {
  Machine small = with_cache();
  ParamValue cache = small.get(Param::UploadCache);
  cache.value = 100e3;
  small.set(Param::UploadCache, cache);
  EXPECT_EQ(host_us(predict(four_uploads("0B"), small), "c"), 400);
}

TEST(MemcpyAsync, OfPartsOfABufferInTurnReadsEachOnceAndFindsItInMemory) {
  EXPECT_EQ(host_us(predict(four_uploads("200000B * i"), with_cache()), "c"), 400)
      << "800 kB in a pass, and 100 are kept";
}

}  // namespace
}  // namespace foretrace::test
