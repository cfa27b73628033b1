// Hangs of NCCL's operations, and how they are explained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>


#include "sim/engine/children.h"
#include "tests/sim/nccl/two_ranks.h"
#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

TEST(Hang, OfRanksWhoseGroupsDifferSaysWhichGroups) {
  const Timeline t = predict(kTwoRanks + R"(
threads:
  grouping:
    processes: [0]
    ops:
      - nccl_group:
          ops:
            - nccl_all_reduce: {comm: world, stream: s, buffer: x, type: float32}
            - nccl_all_reduce: {comm: world, stream: s, buffer: x, type: float32}
      - stream_synchronize: {stream: s}
  apart:
    processes: [1]
    ops:
      - nccl_all_reduce: {comm: world, stream: s, buffer: x, type: float32}
      - nccl_all_reduce: {comm: world, stream: s, buffer: x, type: float32}
      - stream_synchronize: {stream: s}
)");
  ASSERT_EQ(t.outcome.kind, Outcome::Kind::Deadlock);
  EXPECT_THAT(t.outcome.explanation, testing::Contains(testing::HasSubstr("in a group of 2")));
}

// A send leaves while its receiver is on the way; wherever it is when that comes and asks for more,
// the receiver never ends.
TEST(Hang, OfAReceiverOfAnotherSizeWheneverItComes) {
  std::vector<Job> jobs;
  for (int us = 0; us < 60; us += 2) {
    jobs.emplace_back([us]() -> std::vector<double> {
      const Timeline t = predict(kTwoRanks + R"(
threads:
  sender:
    process: 0
    ops:
      - nccl_send: {comm: world, stream: s, buffer: x, size: 200000B, type: int8, peer: 1}
      - stream_synchronize: {stream: s}
  receiver:
    process: 1
    ops:
      - host_compute: {duration: )" + std::to_string(us) + R"(us}
      - nccl_recv: {comm: world, stream: s, buffer: x, size: 204800B, type: int8, peer: 0}
      - stream_synchronize: {stream: s}
)");
      return {t.outcome.kind == Outcome::Kind::Deadlock ? 1.0 : 0.0};
    });
  }
  for (const std::vector<double>& hangs : run_in_children(jobs)) EXPECT_EQ(hangs.front(), 1);
}

TEST(Hang, NamesTheProcessTheLineAndTheMissingRank) {
  const Timeline t = predict(kTwoRanks + R"(
threads:
  receiver:
    process: 1
    ops:
      - nccl_recv: {comm: world, stream: s, buffer: x, type: float32, peer: 0}
      - stream_synchronize: {stream: s}
)");
  ASSERT_EQ(t.outcome.kind, Outcome::Kind::Deadlock);
  const std::string& text = t.outcome.explanation.front();
  EXPECT_NE(text.find("process 1, thread receiver, test.yaml:15: stream_synchronize"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("send from rank 0 to rank 1: rank 0 never called it"), std::string::npos)
      << text;
}

TEST(Hang, SaysWhereARankIsThatCallsItLater) {
  const Timeline t = predict(kTwoRanks + R"(
threads:
  main:
    - nccl_recv: {comm: world, stream: s, buffer: x, type: float32, peer: 1 - process}
    - nccl_send: {comm: world, stream: s, buffer: x, type: float32, peer: 1 - process}
    - stream_synchronize: {stream: s}
)");
  ASSERT_EQ(t.outcome.kind, Outcome::Kind::Deadlock);
  EXPECT_THAT(t.outcome.explanation.front(),
              testing::HasSubstr("send from rank 1 to rank 0: rank 1 calls it in line 13, behind "
                                 "line 12 in its stream"));
}

TEST(Hang, OnAColdCommunicatorIsInTheFirstRecvItself) {
  const Timeline t = predict("warmup: 0\n" + kTwoRanks + R"(
threads:
  receiver:
    process: 1
    ops:
      - nccl_recv: {comm: world, stream: s, buffer: x, type: float32, peer: 0}
      - stream_synchronize: {stream: s}
)");
  ASSERT_EQ(t.outcome.kind, Outcome::Kind::Deadlock);
  const std::string& text = t.outcome.explanation.front();
  EXPECT_NE(text.find("nccl_recv waits for its peers to connect"), std::string::npos) << text;
  EXPECT_NE(text.find("needs rank 0, which never came"), std::string::npos) << text;
}

TEST(Hang, ShowsRanksThatCallDifferentCollectives) {
  const Timeline t = predict(kTwoRanks + R"(
threads:
  first:
    process: 0
    ops:
      - nccl_all_reduce: {comm: world, stream: s, buffer: x, type: float32}
      - stream_synchronize: {stream: s}
  second:
    process: 1
    ops:
      - nccl_broadcast: {comm: world, stream: s, buffer: x, type: float32, root: 0}
      - stream_synchronize: {stream: s}
)");
  ASSERT_EQ(t.outcome.kind, Outcome::Kind::Deadlock);
  EXPECT_NE(t.outcome.explanation.front().find("where another rank calls"), std::string::npos);
}

TEST(Hang, OfAColdGroupNamesTheRankThatHoldsItUp) {
  const Timeline t = predict("warmup: 0\n" + kOneStream + R"(
processes: 3
buffers: {x: {memory: device, size: 4KB}, y: {memory: device, size: 4KB}}
threads:
  rank_0: {process: 0, ops: [nccl_group: {ops: [{nccl_send: {comm: world, stream: s, buffer: x, type: float32, peer: 1}}, {nccl_recv: {comm: world, stream: s, buffer: y, type: float32, peer: 2}}]}]}
  rank_1: {process: 1, ops: [nccl_recv: {comm: world, stream: s, buffer: y, type: float32, peer: 0}]}
)");
  ASSERT_EQ(t.outcome.kind, Outcome::Kind::Deadlock);
  ASSERT_EQ(t.outcome.explanation.size(), 2U);
  EXPECT_THAT(t.outcome.explanation[1],
              testing::HasSubstr("needs rank 0, which connects with all that it sends to and "
                                 "receives from at once: the first transfer from rank 2 to rank 0 "
                                 "needs rank 2, which never came"));
}

/// NCCL copies to the rank itself within one group only.
TEST(Hang, OfARankThatReceivesFromItselfAndSendsNothing) {
  const Timeline t = predict(kTwoRanks + R"(
threads:
  receiver: {process: 1, ops: [{nccl_recv: {comm: world, stream: s, buffer: x, type: float32, peer: 1}}, {stream_synchronize: {stream: s}}]}
)");
  EXPECT_EQ(t.outcome.kind, Outcome::Kind::Deadlock);
}

}  // namespace
}  // namespace foretrace::test
