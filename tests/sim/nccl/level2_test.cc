// What NCCL's kernels find in the level-2 cache.
#include <gtest/gtest.h>

#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

const std::string kTwoProcesses = R"(
processes: 2
streams: {s: {flags: non_blocking}}
communicators: {world: {members: all_devices, init: rank}}
)";

TEST(Collective, TakesLongerWhereOtherKernelsDroveItOutOfTheCache) {
  Machine machine = unit_machine();
  machine.set(Param::L2Size, {1e6, 0, ParameterClass::Assumed, "", ""});
  machine.set(Param::NcclColdKernel, {5e-6, 0, ParameterClass::Assumed, "", ""});
  const Timeline t = predict(kTwoProcesses + R"(
buffers: {x: {memory: device, size: 1MB}, y: {memory: device, size: 64MB}}
threads:
  main:
    - nccl_all_reduce: {comm: world, stream: s, buffer: x, type: float32}
    - nccl_all_reduce: {id: again, comm: world, stream: s, buffer: x, type: float32}
    - elementwise: {stream: s, src: y, dst: y}
    - nccl_all_reduce: {id: cold, comm: world, stream: s, buffer: x, type: float32}
)",
                             machine);
  EXPECT_NEAR(device_us(t, "cold") - device_us(t, "again"), 5, 0.001);
}

}  // namespace
}  // namespace foretrace::test
