#include "hw/hang_report.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "programs.h"

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
  const ProcessReport report{
      3, {{1, Phase::Running, {7, 1ULL << 40}, {{1, 0}, {2, 5}}, false}}, {"copy", "comm(1)"}};
  write_hang_report(hang_file(directory, 3), report);
  const auto read = read_hang_report(hang_file(directory, 3));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->process, 3U);
  EXPECT_THAT(read->busy_streams, ElementsAre("copy", "comm(1)"));
  ASSERT_EQ(read->threads.size(), 1U);
  EXPECT_EQ(read->threads[0].current, (Execution{7, 1ULL << 40}));
  EXPECT_THAT(read->threads[0].nccl_calls, ElementsAre(Execution{1, 0}, Execution{2, 5}));
  EXPECT_FALSE(read->threads[0].nccl_calls_complete);
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

}  // namespace
}  // namespace foretrace::hw
