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

}  // namespace
}  // namespace foretrace::test
