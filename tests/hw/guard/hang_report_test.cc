#include "hw/guard/hang_report.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/hw/programs.h"

namespace foretrace::hw {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

using Phase = ThreadState::Phase;

TEST(HangReport, NamesTheReceiveThatNobodySendsTo) {
  const Program program = program_of(R"(
processes: 2
buffers: {x: {memory: device, size: 64B}}
communicators: {world: {members: all_devices, init: rank}}
threads:
  sender:
    process: 0
    ops:
      - nccl_send: {comm: world, buffer: x, type: float32, peer: 1}
  receiver:
    process: 1
    ops:
      - nccl_recv: {comm: world, buffer: x, type: float32, peer: 0}
      - nccl_recv: {id: never_sent, comm: world, buffer: x, type: float32, peer: 0}
      - device_synchronize: {}
)",
                                     "hang");
  const auto infos = index_ops(program);
  // Operations by OpId: the send, two receives, the synchronize.
  const ProcessReport sender{0, {{0, Phase::Finished, {0, 0}, {{0, 0}}}}, {}};
  const ProcessReport receiver{1, {{1, Phase::Running, {3, 0}, {{1, 0}, {2, 0}}}}, {"default(0)"}};
  const int line = infos[2].op->line;
  EXPECT_THAT(
      explain_hang(program, {sender, receiver}),
      ElementsAre("process 1, thread receiver, hang.yaml:" + std::to_string(line) +
                      ": nccl_recv from rank 0 never completed: rank 0 has no matching nccl_send",
                  "process 0, thread sender has issued all its operations",
                  "process 1, thread receiver, hang.yaml:" + std::to_string(line + 1) +
                      ": device_synchronize never returned",
                  "process 1: work that has not ended on default(0)"));
}

constexpr const char* kCollectives = R"(
processes: 2
buffers: {x: {memory: device, size: 64B}}
communicators: {world: {members: all_devices, init: rank}}
threads:
  zero:
    process: 0
    ops:
      - nccl_all_reduce: {comm: world, buffer: x, type: float32, op: sum}
      - nccl_broadcast: {comm: world, buffer: x, type: float32, root: 0}
  one:
    process: 1
    ops:
      - nccl_broadcast: {comm: world, buffer: x, type: float32, root: 0}
      - nccl_all_reduce: {comm: world, buffer: x, type: float32, op: sum}
)";

TEST(HangReport, NamesTheRankThatNeverCalledACollective) {
  const Program program = program_of(kCollectives, "hang");
  const ProcessReport zero{0, {{0, Phase::Running, {0, 0}, {{0, 0}}}}, {}};
  const ProcessReport one{1, {{1, Phase::NotStarted, {0, 0}, {}}}, {}};
  EXPECT_THAT(
      explain_hang(program, {zero, one}),
      Contains(HasSubstr("nccl_all_reduce on world never completed: rank 1 never called it")));
}

TEST(HangReport, NamesCollectivesThatMeetInAnotherOrder) {
  const Program program = program_of(kCollectives, "hang");
  const ProcessReport zero{0, {{0, Phase::Running, {1, 0}, {{0, 0}, {1, 0}}}}, {}};
  const ProcessReport one{1, {{1, Phase::Running, {3, 0}, {{2, 0}, {3, 0}}}}, {}};
  EXPECT_THAT(explain_hang(program, {zero, one}),
              Contains(testing::AllOf(HasSubstr("nccl_all_reduce on world never completed: it met"),
                                      HasSubstr("nccl_broadcast"))));
}

TEST(HangReport, SaysNothingOfPartnersWhenOldCallsWereForgotten) {
  const Program program = program_of(kCollectives, "hang");
  const ProcessReport zero{0, {{0, Phase::Running, {0, 0}, {{0, 0}}, false}}, {}};
  EXPECT_THAT(explain_hang(program, {zero}), ElementsAre(HasSubstr("never returned")));
}

TEST(HangReport, TravelsThroughAFile) {
  const auto directory = std::filesystem::path{testing::TempDir()} / "hang_report_test";
  std::filesystem::create_directories(directory);
  const ProcessReport report{3,
                             {{1, Phase::Running, {7, 1ULL << 40}, {{1, 0}, {2, 5}}, false, 6}},
                             {"copy", "comm(1)"},
                             {{4, 2}}};
  write_hang_report(hang_file(directory, 3), report);
  const auto read = read_hang_report(hang_file(directory, 3));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->process, 3U);
  EXPECT_THAT(read->busy_streams, ElementsAre("copy", "comm(1)"));
  ASSERT_EQ(read->threads.size(), 1U);
  EXPECT_EQ(read->threads[0].current, (Execution{7, 1ULL << 40}));
  EXPECT_THAT(read->threads[0].nccl_calls, ElementsAre(Execution{1, 0}, Execution{2, 5}));
  EXPECT_FALSE(read->threads[0].nccl_calls_complete);
  EXPECT_EQ(read->threads[0].open_group, 6U);
  EXPECT_THAT(read->waiting_host_functions, ElementsAre(Execution{4, 2}));
  EXPECT_FALSE(read_hang_report(hang_file(directory, 4)));
  std::filesystem::remove_all(directory);
}

TEST(NcclCallLog, KeepsTheLastOfVeryManyInOrder) {
  const auto log = std::make_unique<NcclCallLog>();
  for (std::uint64_t i = 0; i < 100'000; ++i) log->push({1, i});
  EXPECT_FALSE(log->complete());
  const auto calls = log->calls();
  ASSERT_FALSE(calls.empty());
  EXPECT_EQ(calls.back(), (Execution{1, 99'999}));
  for (std::size_t i = 1; i < calls.size(); ++i) {
    ASSERT_EQ(calls[i].instance, calls[i - 1].instance + 1);
  }
  log->clear();
  EXPECT_TRUE(log->complete());
  EXPECT_TRUE(log->calls().empty());
}

TEST(HangReport, SaysThatAGroupWasNeverClosed) {
  const Program program = program_of(R"(
signals: {never: {}}
buffers: {x: {memory: device, size: 64B}}
communicators: {world: {members: all_devices, init: rank}}
threads:
  main:
    - nccl_group:
        ops:
          - nccl_all_reduce: {comm: world, buffer: x, type: float32, op: sum}
          - host_wait: {signal: never}
)",
                                     "hang");
  const auto infos = index_ops(program);
  const std::uint32_t group = find_op(program, "nccl_group").id.value;
  const std::uint32_t wait = find_op(program, "host_wait").id.value;
  ProcessReport report{0, {{0, Phase::Running, {wait, 0}, {}}}, {}};
  report.threads[0].open_group = group;
  EXPECT_THAT(
      explain_hang(program, {report}),
      ElementsAre("process 0, thread main, hang.yaml:" + std::to_string(infos[wait].op->line) +
                  ": host_wait never returned; the nccl_group opened at line " +
                  std::to_string(infos[group].op->line) + " was never closed"));
}

TEST(HangReport, NamesTheHostFunctionThatHoldsAFullStream) {
  const Program program = program_of(R"(
streams: {s: {flags: non_blocking}}
signals: {go: {}}
threads:
  main:
    - host_func: {stream: s, wait: go}
    - repeat: {times: 5000, ops: [{spin: {stream: s, duration: 1us}}]}
    - stream_synchronize: {stream: s}
)",
                                     "hang");
  const Op& function = find_op(program, "host_func");
  const auto line = std::to_string(function.line);
  ProcessReport report{0, {{0, Phase::Running, {find_op(program, "spin").id.value, 9}, {}}}, {}};
  report.waiting_host_functions = {{function.id.value, 0}};
  EXPECT_THAT(
      explain_hang(program, {report}),
      ElementsAre(HasSubstr("spin never returned; the queue of its stream is full behind the "
                            "host_func at line " +
                            line),
                  "process 0, thread main, hang.yaml:" + line +
                      ": host_func on s waits for the signal go, which never came"));
  // Who waits for the stream is not kept from putting work there.
  report.threads[0].current = {find_op(program, "stream_synchronize").id.value, 0};
  EXPECT_THAT(explain_hang(program, {report}),
              ElementsAre(testing::EndsWith("never returned"), HasSubstr("never came")));
}

}  // namespace
}  // namespace foretrace::hw
