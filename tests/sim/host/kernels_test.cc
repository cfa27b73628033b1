// Kernels and the memory that they go through: 1000 bytes per us from every memory.
#include <gtest/gtest.h>

#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

TEST(Kernel, ThatReadsAnotherGpusMemoryTakesTheTimeOfTheLink) {
  const Timeline t = predict(R"(
devices: 2
streams: {s: {flags: non_blocking}}
buffers:
  here:  {memory: device, device: 0, size: 100000B, count: 2}
  there: {memory: device, device: 1, size: 100000B}
threads:
  main:
    - enable_peer_access: {device: 0, peer: 1}
    - elementwise: {id: local, stream: s, src: here(0), dst: here(1)}
    - elementwise: {id: remote, stream: s, src: there, dst: here(1)}
    - elementwise: {id: written, stream: s, src: here(0), dst: there}
    - reduction: {id: reduced, stream: s, src: there, dst: here(1)}
    - reduction: {id: small, stream: s, src: there, dst: here(1), size: 10000B}
    - device_synchronize: {}
)");
  const double link = 100 / 0.74;
  EXPECT_LT(device_us(t, "local"), 300);
  EXPECT_NEAR(device_us(t, "remote"), std::max(link, device_us(t, "local")), 0.01);
  EXPECT_NEAR(device_us(t, "written"), device_us(t, "remote"), 0.01) << "the other way";
  EXPECT_NEAR(device_us(t, "reduced"), link, 0.01);
  EXPECT_NEAR(device_us(t, "small"), 10 / 0.74, 0.01);
}

TEST(Kernel, ThatWaitsForRoomInTheQueueGoesThroughItsMemoryOnce) {
  Machine machine = unit_machine();
  const auto set = [&](Param param, double value) {
    machine.set(param, {value, 0, ParameterClass::Assumed, "test", ""});
  };
  set(Param::LaunchQueueDepth, 1);
  set(Param::L2Size, 100e3);
  set(Param::UnaryCached, 10e9);  // memory: 1 GB/s
  const Timeline t = predict(R"(
streams: {s: {flags: non_blocking}}
buffers:
  x: {memory: device, size: 10000B, count: 2}
  y: {memory: device, size: 1000000B}
threads:
  main:
    - spin: {stream: s, duration: 1ms}
    - elementwise: {id: first, stream: s, src: x(0), dst: x(1)}
    - device_synchronize: {}
    - memset_async: {stream: s, dst: y}
    - device_synchronize: {}
)",
                             machine);
  EXPECT_NEAR(device_us(t, "first"), 20, 0.1) << "nobody has read x before";
}

}  // namespace
}  // namespace foretrace::test
