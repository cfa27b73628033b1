#include "hw/check/plan.h"

#include <gmock/gmock.h>

#include "hw/cuda/hash.h"
#include "tests/hw/programs.h"

namespace foretrace::hw {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Value value(std::vector<Term> terms) { return {DataType::Float32, RedOp::Sum, std::move(terms)}; }

/// Buffers in the order of their declaration.
std::uint32_t seed(std::uint32_t process, std::uint32_t buffer) {
  return pattern_seed(process, BufferId{buffer});
}

TEST(CheckPlan, ExpectsTheSourceWhereACopyPutIt) {
  const Program program = program_of(R"(
buffers:
  host: {memory: pinned, size: 64B}
  x:    {memory: device, size: 64B}
threads:
  main:
    - memcpy_async: {src: host, dst: x, size: 16B, src_offset: 32B, dst_offset: 16B}
)");
  const CheckPlan plan = plan_check(program);
  ASSERT_TRUE(plan.possible);
  ASSERT_THAT(plan.steps[0], SizeIs(1));
  const auto& pieces = plan.steps[0][0].pieces;
  ASSERT_THAT(pieces, SizeIs(1));
  EXPECT_EQ(pieces[0].buffer, BufferId{1});
  // Element 4 of x is element 8 of host.
  EXPECT_EQ(pieces[0].piece, (Piece{16, 32, value({{seed(0, 0), 4, 1}})}));
  EXPECT_EQ(plan.results, 1U);
  EXPECT_EQ(plan.expected, 1U);
}

constexpr const char* kTwoRanks = R"(
processes: 2
buffers:
  mine: {memory: device, size: 64B}
  all:  {memory: device, size: 128B}
communicators: {world: {members: all_devices, init: rank}}
threads:
  main:
)";

TEST(CheckPlan, ExpectsTheSumOfAllRanksEverywhere) {
  const Program program =
      program_of(std::string{kTwoRanks} +
                 "    - nccl_all_reduce: {comm: world, buffer: mine, type: float32, op: sum}\n");
  const CheckPlan plan = plan_check(program);
  ASSERT_TRUE(plan.possible);
  for (std::uint32_t process = 0; process < 2; ++process) {
    ASSERT_THAT(plan.steps[process], SizeIs(1));
    ASSERT_THAT(plan.steps[process][0].pieces, SizeIs(1));
    EXPECT_EQ(plan.steps[process][0].pieces[0].piece,
              (Piece{0, 64, value({{seed(0, 0), 0, 1}, {seed(1, 0), 0, 1}})}));
  }
}

TEST(CheckPlan, ExpectsEachRanksPartOfAReduceScatter) {
  const Program program = program_of(
      std::string{kTwoRanks} +
      "    - nccl_reduce_scatter: {comm: world, send_buffer: all, recv_buffer: mine, size: 64B, "
      "type: float32, op: sum}\n");
  const CheckPlan plan = plan_check(program);
  ASSERT_TRUE(plan.possible);
  ASSERT_THAT(plan.steps[1], SizeIs(1));
  ASSERT_THAT(plan.steps[1][0].pieces, SizeIs(1));
  // Rank 1 gets bytes [64, 128): element i is element i + 16 of both ranks' buffers.
  EXPECT_EQ(plan.steps[1][0].pieces[0].piece,
            (Piece{0, 64, value({{seed(0, 1), 16, 1}, {seed(1, 1), 16, 1}})}));
}

TEST(CheckPlan, ExpectsAllPartsOfAnAllGather) {
  const Program program = program_of(
      std::string{kTwoRanks} +
      "    - nccl_all_gather: {comm: world, send_buffer: mine, recv_buffer: all, size: 64B, type: "
      "float32}\n");
  const CheckPlan plan = plan_check(program);
  ASSERT_THAT(plan.steps[0], SizeIs(1));
  ASSERT_THAT(plan.steps[0][0].pieces, SizeIs(2));
  EXPECT_EQ(plan.steps[0][0].pieces[0].piece, (Piece{0, 64, value({{seed(0, 0), 0, 1}})}));
  EXPECT_EQ(plan.steps[0][0].pieces[1].piece, (Piece{64, 128, value({{seed(1, 0), -16, 1}})}));
}

TEST(CheckPlan, FollowsARingOfSendsAndReceives) {
  const Program program = program_of(R"(
processes: 3
buffers:
  mine:   {memory: device, size: 64B}
  theirs: {memory: device, size: 64B}
communicators: {world: {members: all_devices, init: rank}}
threads:
  main:
    - nccl_group:
        ops:
          - nccl_send: {comm: world, buffer: mine, type: float32, peer: (process + 1) % processes}
          - nccl_recv: {comm: world, buffer: theirs, type: float32, peer: (process + 2) % processes}
)");
  const CheckPlan plan = plan_check(program);
  ASSERT_TRUE(plan.possible);
  for (std::uint32_t process = 0; process < 3; ++process) {
    ASSERT_THAT(plan.steps[process], SizeIs(1));
    EXPECT_THAT(plan.steps[process][0].calls, SizeIs(2)) << "a group is issued together";
    ASSERT_THAT(plan.steps[process][0].pieces, SizeIs(1));
    EXPECT_EQ(plan.steps[process][0].pieces[0].piece.value,
              value({{seed((process + 2) % 3, 0), 0, 1}}));
  }
}

TEST(CheckPlan, OneThreadThatDrivesTwoDevicesIsOneStep) {
  const Program program = program_of(R"(
devices: 2
streams: {comm: {each: device, flags: non_blocking}}
buffers: {data: {each: device, memory: device, size: 64B}}
communicators: {world: {members: all_devices, init: all}}
threads:
  main:
    - nccl_group:
        ops:
          - for_each:
              index: d
              in: devices
              ops:
                - nccl_all_reduce: {comm: world(d), stream: comm(d), buffer: data(d), type: float32, op: sum}
)");
  const CheckPlan plan = plan_check(program);
  ASSERT_TRUE(plan.possible);
  ASSERT_THAT(plan.steps[0], SizeIs(1));
  EXPECT_THAT(plan.steps[0][0].calls, SizeIs(2));
  EXPECT_THAT(plan.steps[0][0].pieces, SizeIs(2));
}

TEST(CheckPlan, SumsGrowWithEveryRoundInPlace) {
  const Program program = program_of(std::string{kTwoRanks} + R"(    - repeat:
        times: 3
        ops:
          - nccl_all_reduce: {comm: world, buffer: mine, type: float32, op: sum}
)");
  const CheckPlan plan = plan_check(program);
  ASSERT_THAT(plan.steps[0], SizeIs(3));
  // Both ranks hold the sum after the first round; every later one doubles it.
  EXPECT_EQ(plan.steps[0][2].pieces[0].piece.value,
            value({{seed(0, 0), 0, 4}, {seed(1, 0), 0, 4}}));
}

TEST(CheckPlan, IsNotPossibleForAProgramThatHangs) {
  const Program program = program_of(R"(
processes: 2
buffers: {x: {memory: device, size: 64B}}
communicators: {world: {members: all_devices, init: rank}}
threads:
  receiver:
    process: 1
    ops:
      - nccl_recv: {comm: world, buffer: x, type: float32, peer: 0}
)");
  const CheckPlan plan = plan_check(program);
  EXPECT_FALSE(plan.possible);
  EXPECT_THAT(plan.why_not, HasSubstr("process 1, thread receiver"));
}

TEST(CheckPlan, OrdersThreadsByTheirSignals) {
  const Program program = program_of(R"(
signals: {ready: {}}
buffers:
  host: {memory: pinned, size: 64B}
  x:    {memory: device, size: 64B}
  y:    {memory: device, size: 64B}
threads:
  second:
    - host_wait: {signal: ready}
    - memcpy_async: {src: x, dst: y}
  first:
    - memcpy_async: {src: host, dst: x}
    - host_signal: {signal: ready}
)");
  const CheckPlan plan = plan_check(program);
  ASSERT_TRUE(plan.possible);
  ASSERT_THAT(plan.steps[0], SizeIs(testing::Ge(2U)));
  // The last copy has what the first one brought.
  const auto& pieces = plan.steps[0].back().pieces;
  ASSERT_THAT(pieces, SizeIs(1));
  EXPECT_EQ(pieces[0].buffer, BufferId{2});
  EXPECT_EQ(pieces[0].piece.value, value({{seed(0, 0), 0, 1}}));
}

TEST(CheckPlan, AddsUpAReduction) {
  const Program program = program_of(R"(
buffers:
  x: {memory: device, size: 64B}
  y: {memory: device, size: 4B}
threads:
  main:
    - reduction: {src: x, dst: y, size: 64B}
)");
  const CheckPlan plan = plan_check(program);
  ASSERT_THAT(plan.steps[0], SizeIs(1));
  ASSERT_THAT(plan.steps[0][0].numbers, SizeIs(1));
  double sum = 0;
  for (std::uint64_t i = 0; i < 16; ++i) sum += pattern_value(seed(0, 0), i);
  EXPECT_EQ(plan.steps[0][0].numbers[0].value, sum);
}

TEST(CheckPlan, WritesLongLoopsOutAFewTimesOnly) {
  const Program program = program_of(R"(
buffers:
  host: {memory: pinned, size: 64B}
  x:    {memory: device, size: 64B}
threads:
  main:
    - repeat:
        times: 10000000
        ops:
          - memcpy_async: {src: host, dst: x}
)");
  const CheckPlan plan = plan_check(program);
  EXPECT_TRUE(plan.possible);
  EXPECT_THAT(plan.steps[0], SizeIs(16));
}

TEST(CheckPlan, SkipsWhatOnlyTakesTime) {
  const Program program = program_of(R"(
threads:
  main:
    - host_compute: {duration: 1us}
    - spin: {duration: 1us}
)");
  const CheckPlan plan = plan_check(program);
  for (const CheckStep& step : plan.steps[0]) EXPECT_THAT(step.calls, IsEmpty());
}

TEST(CheckPlan, RepeatsWhatWasCapturedAtEveryLaunch) {
  const Program program = program_of(R"(
streams: {s: {flags: non_blocking}}
graphs: {g: {}}
buffers:
  x: {memory: device, size: 64B}
  y: {memory: device, size: 64B}
threads:
  main:
    - graph_capture:
        graph: g
        stream: s
        ops:
          - host_func: {stream: s, duration: 1us}
          - elementwise: {stream: s, srcs: [x, y], dst: x}
    - repeat:
        times: 2
        ops:
          - graph_launch: {graph: g, stream: s}
)");
  const CheckPlan plan = plan_check(program);
  ASSERT_TRUE(plan.possible) << plan.why_not;
  EXPECT_EQ(plan.results, 2U) << "the capture itself leaves nothing in memory";
  const CheckStep& last = plan.steps[0].back();
  ASSERT_THAT(last.pieces, SizeIs(1));
  // x + y, then x + y + y.
  EXPECT_EQ(last.pieces[0].piece.value, value({{seed(0, 0), 0, 1}, {seed(0, 1), 0, 2}}));
}

TEST(CheckPlan, SkipsGraphsThatAnotherThreadCaptured) {
  const Program program = program_of(R"(
streams: {s: {flags: non_blocking}}
graphs: {g: {}}
threads:
  first:
    - graph_capture: {graph: g, stream: s, ops: [{spin: {stream: s, duration: 1us}}]}
    - host_barrier: {}
  second:
    - host_barrier: {}
    - graph_launch: {graph: g, stream: s}
)");
  const CheckPlan plan = plan_check(program);
  EXPECT_FALSE(plan.possible);
  EXPECT_THAT(summary_of(plan), HasSubstr("thread second launches a graph"));
}

TEST(CheckPlan, TakesAHostFunctionsSignal) {
  const Program program = program_of(R"(
signals: {done: {}, go: {}}
buffers:
  host: {memory: pinned, size: 64B}
  x:    {memory: device, size: 64B}
threads:
  main:
    - host_func: {wait: go, signal: done}
    - host_signal: {signal: go}
  other:
    - host_wait: {signal: done}
    - memcpy_async: {src: host, dst: x}
)");
  const CheckPlan plan = plan_check(program);
  EXPECT_TRUE(plan.possible) << plan.why_not;
  EXPECT_EQ(plan.expected, 1U);
}

TEST(CheckPlan, RunsTheHostsOperationsOfAGroupBeforeItsEnd) {
  const Program program = program_of(R"(
processes: 2
signals: {go: {}}
buffers: {x: {memory: device, size: 64B}}
communicators: {world: {members: all_devices, init: rank}}
threads:
  main:
    - nccl_group:
        ops:
          - nccl_all_reduce: {comm: world, buffer: x, type: float32, op: sum}
          - host_wait: {signal: go}
  other:
    - host_signal: {signal: go}
)");
  const CheckPlan plan = plan_check(program);
  EXPECT_TRUE(plan.possible) << plan.why_not;
  EXPECT_EQ(plan.expected, 2U);
}

TEST(CheckPlan, MeetsOnceToCreateACommunicatorIfNeeded) {
  Program program = program_of(R"(
processes: 2
buffers: {x: {memory: device, size: 64B}}
communicators: {world: {members: all_devices, init: op}}
threads:
  zero:
    process: 0
    ops:
      - nccl_comm_init: {comm: world}
      - nccl_comm_init: {comm: world}
      - nccl_all_reduce: {comm: world, buffer: x, type: float32, op: sum}
  one:
    process: 1
    ops:
      - nccl_comm_init: {comm: world}
      - nccl_all_reduce: {comm: world, buffer: x, type: float32, op: sum}
)");
  // torch.distributed's operations have it; nccl_comm_init as written always creates.
  for (HostThread& thread : program.threads) {
    for (Op& op : thread.ops) {
      if (auto* init = std::get_if<NcclCommInit>(&op.kind)) init->if_needed = true;
    }
  }
  const CheckPlan plan = plan_check(program);
  EXPECT_TRUE(plan.possible) << plan.why_not;
  EXPECT_EQ(plan.expected, 2U);
}

}  // namespace
}  // namespace foretrace::hw
