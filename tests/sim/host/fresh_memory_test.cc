// New host memory: the pages that a pass touches first cost more, and no more than once. 1000 bytes
// per us on every route; the first touch takes as long again.
#include <gtest/gtest.h>

#include "sim/host/touched_pages.h"
#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

TEST(TouchedPages, AreCountedOnce) {
  sim::TouchedPages pages;
  EXPECT_EQ(pages.touch(100, Bytes{100}), Bytes{100});
  EXPECT_EQ(pages.touch(100, Bytes{100}), Bytes{0});
  EXPECT_EQ(pages.touch(150, Bytes{100}), Bytes{50}) << "200 to 250 are new";
  EXPECT_EQ(pages.touch(400, Bytes{100}), Bytes{100});
  EXPECT_EQ(pages.touch(0, Bytes{600}), Bytes{350}) << "all but 100 to 250 and 400 to 500";
  EXPECT_EQ(pages.touch(0, Bytes{600}), Bytes{0});
}

Machine touching() {
  Machine machine = unit_machine();
  ParamValue rate = machine.get(Param::HostCopyBandwidth);
  rate.value = 1e9;
  machine.set(Param::HostTouchBandwidth, rate);
  rate.value = 0.5e9;
  machine.set(Param::FreshD2hBandwidth, rate);
  return machine;
}

TEST(Memcpy, IntoNewMemoryTouchesItsPagesTheFirstTime) {
  const Timeline t = predict(R"(
buffers:
  old: {memory: pageable, size: 1MB}
  new: {memory: fresh_pageable, size: 1MB}
threads:
  main:
    - memcpy: {id: first, src: old, dst: new, size: 100000B}
    - memcpy: {id: again, src: old, dst: new, size: 100000B}
    - memcpy: {id: behind_it, src: old, dst: new, size: 100000B, dst_offset: 100000B}
)",
                             touching());
  const double again = host_us(t, "again");
  EXPECT_EQ(host_us(t, "first"), again + 100);
  EXPECT_EQ(host_us(t, "behind_it"), again + 100);
}

TEST(HostRegister, MakesThePagesThatNobodyHasTouched) {
  Machine machine = touching();
  machine.set(Param::HostRegisterTouch, {0.25, 0, ParameterClass::Assumed, "", ""});
  const Timeline t = predict(R"(
buffers:
  old: {memory: pageable, size: 100000B}
  new: {memory: fresh_pageable, size: 100000B}
  part: {memory: fresh_pageable, size: 100000B}
threads:
  main:
    - memcpy: {src: old, dst: part, size: 40000B}
    - host_register: {id: old, buffer: old}
    - host_register: {id: new, buffer: new}
    - host_register: {id: part, buffer: part}
)",
                             machine);
  EXPECT_EQ(host_us(t, "new"), host_us(t, "old") + 25);
  EXPECT_EQ(host_us(t, "part"), host_us(t, "old") + 15);
}

TEST(Memcpy, FromAGpuIntoNewMemoryIsSlowTheFirstTime) {
  const Timeline t = predict(R"(
buffers:
  x:   {memory: device, size: 1MB}
  new: {memory: fresh_pageable, size: 1MB}
threads:
  main:
    - memcpy: {id: first, src: x, dst: new, size: 100000B}
    - memcpy: {id: again, src: x, dst: new, size: 100000B}
)",
                             touching());
  EXPECT_EQ(device_us(t, "first"), 200);
  EXPECT_EQ(device_us(t, "again"), 100);
}

TEST(MemcpyAsync, OfAnotherStreamNeedNotWaitForOneToPageableMemory) {
  const Timeline t = predict(R"(
streams: {a: {flags: non_blocking}, b: {flags: non_blocking}}
buffers:
  x:      {memory: device, size: 1MB, count: 2}
  old:    {memory: pageable, size: 1MB}
  pinned: {memory: pinned, size: 1MB}
threads:
  saver:
    - memcpy_async: {id: slow, stream: a, src: x(0), dst: old, size: 100000B}
  trainer:
    - host_compute: {duration: 10us}
    - memcpy_async: {id: quick, stream: b, src: x(1), dst: pinned, size: 10B}
)");
  EXPECT_LT(device_spans(t, "quick")[0].end_ns, device_spans(t, "slow")[0].end_ns);
}

}  // namespace
}  // namespace foretrace::test
