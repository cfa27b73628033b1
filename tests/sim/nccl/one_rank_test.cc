// Communicators of one rank.
#include <gtest/gtest.h>

#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

TEST(Collective, OfOneRankIsACopyOrNothing) {
  const Timeline t = predict(R"(
streams: {s: {flags: non_blocking}}
buffers: {x: {memory: device, size: 1MB, count: 2}}
communicators: {world: {members: all_devices, init: all}}
threads:
  main:
    - nccl_all_reduce: {id: in_place, comm: world, stream: s, buffer: x(0), type: float32}
    - stream_synchronize: {stream: s}
    - memcpy_async: {id: copy, stream: s, src: x(0), dst: x(1)}
    - stream_synchronize: {stream: s}
    - nccl_all_gather: {id: apart, comm: world, stream: s, send_buffer: x(0), recv_buffer: x(1), type: int8}
    - stream_synchronize: {stream: s}
)");
  EXPECT_TRUE(device_spans(t, "in_place").empty());
  EXPECT_EQ(host_spans(t, "in_place").size(), 1u);
  ASSERT_EQ(device_spans(t, "apart").size(), 1u);
  EXPECT_EQ(device_us(t, "apart"), device_us(t, "copy"));
}

}  // namespace
}  // namespace foretrace::test
