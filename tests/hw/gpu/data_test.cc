#include <gmock/gmock.h>

#include "hw/check/data_check.h"
#include "tests/hw/gpu/gpu.h"
#include "tests/hw/programs.h"

namespace foretrace::hw {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

DataCheck check(const Program& program) {
  TestRun run{program};
  return check_data(program, Processes{}, *run);
}

TEST(DataCheckOnGpu, FindsCopiesSetsAndSumsRight) {
  const Program program = program_of(R"(
streams: {s: {flags: non_blocking}}
buffers:
  pinned:   {memory: pinned, size: 1000004B}
  pageable: {memory: pageable, size: 1000004B}
  x:        {memory: device, size: 1000004B}
  y:        {memory: device, size: 1000004B}
  one:      {memory: device, size: 4B}
threads:
  main:
    - memcpy_async: {stream: s, src: pinned, dst: x}
    - memcpy: {src: pageable, dst: y}
    - elementwise: {stream: s, srcs: [x, y], dst: x, size: 1000004B}
    - memcpy_async: {stream: s, src: x, dst: y, size: 400004B, src_offset: 600000B, dst_offset: 8B}
    - memcpy: {src: y, dst: pageable}
    - reduction: {stream: s, src: x, dst: one, size: 1000004B}
    - memset_async: {stream: s, dst: x, size: 4096B}
    - memcpy: {src: x, dst: pinned}
)");
  FORETRACE_NEEDS_GPUS(1);
  const DataCheck result = check(program);
  EXPECT_THAT(result.wrong, IsEmpty());
  EXPECT_THAT(result.summary, HasSubstr("8 of 8 results"));
}

TEST(DataCheckOnGpu, FindsCollectivesOfOneThreadAndTwoDevicesRight) {
  const Program program = program_of(R"(
devices: 2
streams: {comm: {each: device, flags: non_blocking}}
buffers:
  part:  {each: device, memory: device, size: 1MiB}
  whole: {each: device, memory: device, size: 2MiB}
communicators: {world: {members: all_devices, init: all}}
threads:
  main:
    - nccl_group: {ops: [{for_each: {index: d, in: devices, ops: [
        {nccl_all_reduce: {comm: world(d), stream: comm(d), buffer: part(d), type: float32, op: sum}}]}}]}
    - nccl_group: {ops: [{for_each: {index: d, in: devices, ops: [
        {nccl_all_gather: {comm: world(d), stream: comm(d), send_buffer: part(d), recv_buffer: whole(d), size: 1MiB, type: float32}}]}}]}
    - nccl_group: {ops: [{for_each: {index: d, in: devices, ops: [
        {nccl_reduce_scatter: {comm: world(d), stream: comm(d), send_buffer: whole(d), recv_buffer: part(d), size: 1MiB, type: float32, op: max}}]}}]}
    - nccl_group: {ops: [{for_each: {index: d, in: devices, ops: [
        {nccl_send: {comm: world(d), stream: comm(d), buffer: part(d), type: float32, peer: 1 - d}},
        {nccl_recv: {comm: world(d), stream: comm(d), buffer: whole(d), size: 1MiB, type: float32, peer: 1 - d}}]}}]}
)");
  FORETRACE_NEEDS_GPUS(2);
  const DataCheck result = check(program);
  EXPECT_THAT(result.wrong, IsEmpty());
}

}  // namespace
}  // namespace foretrace::hw
