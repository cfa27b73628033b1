#include "hw/run/program_facts.h"

#include <gmock/gmock.h>

#include "tests/hw/programs.h"

namespace foretrace::hw {
namespace {

using testing::ElementsAre;

TEST(BufferTypes, FollowTheOperationsThatComputeOnThem) {
  const Program program = program_of(R"(
buffers:
  host:  {memory: pinned, size: 64B}
  half:  {memory: device, size: 64B, count: 2}
  whole: {memory: device, size: 64B}
threads:
  main:
    - memcpy_async: {src: host, dst: whole}
    - repeat:
        index: i
        times: 2
        ops:
          - elementwise: {src: half(i), dst: half(i), type: float16}
    - elementwise: {src: whole, dst: whole, type: int32}
)");
  // In the order of declaration: host, half(0), half(1), whole. No operation types host.
  EXPECT_THAT(buffer_types(program),
              ElementsAre(Element::Float32, Element::Float16, Element::Float16, Element::Int32));
}

TEST(VariablesAt, AreTheProcessAndTheLoopIndices) {
  const Program program = program_of(R"(
threads:
  main:
    - repeat:
        times: 3
        ops:
          - repeat:
              times: 4
              ops:
                - spin: {duration: 1us}
)");
  const auto infos = index_ops(program);
  const OpInfo& spin = infos[find_op(program, "spin").id.value];
  // instance = 2 * 4 + 3
  EXPECT_THAT(variables_at(spin, infos, 11, 5), ElementsAre(5, 2, 3));
}

TEST(RankOf, IsThePositionAmongTheMembers) {
  const Program program = program_of(R"(
processes: 2
devices: 2
communicators: {cross: {members: [[1, 0], [0, 1]], init: rank}}
threads:
  main:
    - host_barrier: {}
)");
  // Handles: one per device of a process, so cross(0) is handle 0 and cross(1) handle 1.
  EXPECT_EQ(rank_of(program, CommId{0}, 1), 0);
  EXPECT_EQ(rank_of(program, CommId{1}, 0), 1);
  EXPECT_EQ(rank_of(program, CommId{0}, 0), -1);
}

TEST(StreamOf, IsEmptyForOperationsThatNoStreamSees) {
  const Program program = program_of(R"(
threads:
  main:
    - host_compute: {duration: 1us}
    - device_synchronize: {}
    - spin: {duration: 1us}
)");
  const std::vector<std::int64_t> variables{0};
  EXPECT_EQ(stream_of(program, find_op(program, "host_compute").kind, variables), std::nullopt);
  EXPECT_EQ(stream_of(program, find_op(program, "device_synchronize").kind, variables),
            std::nullopt);
  EXPECT_EQ(stream_of(program, find_op(program, "spin").kind, variables), StreamId{0});
}

TEST(ThreadsOf, AreThoseThatRunInTheProcess) {
  const Program program = program_of(R"(
processes: 3
threads:
  everywhere:
    - host_compute: {duration: 1us}
  only_one: {process: 1, ops: [{host_compute: {duration: 1us}}]}
)");
  EXPECT_THAT(threads_of(program, 0), testing::SizeIs(1));
  EXPECT_THAT(threads_of(program, 1), testing::SizeIs(2));
}

TEST(HasFault, LooksIntoBlocks) {
  EXPECT_TRUE(has_fault(program_of(R"(
threads:
  main:
    - repeat: {times: 2, ops: [{fault: {}}]}
)")));
  EXPECT_FALSE(has_fault(program_of(R"(
threads:
  main:
    - spin: {duration: 1us}
)")));
}

}  // namespace
}  // namespace foretrace::hw
