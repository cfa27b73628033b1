// Slices, ports and credits by numbers that can be added up in the head: a picosecond is the unit.
#include "sim/chunk/network.h"

#include <gtest/gtest.h>

#include <random>

namespace foretrace::sim {
namespace {

/// Programs whose ranks begin at times of their own, all in one engine.
class ChunkRun final : Handler {
 public:
  explicit ChunkRun(std::uint32_t gpus) : network_{engine_, gpus} {}

  /// `begins[i]`: of rank i, or kNowhere for never. Returns the program's number.
  std::size_t add(const ChunkProgram& program, const std::vector<std::uint32_t>& gpus,
                  std::vector<std::uint32_t> begins) {
    auto& started = *started_.emplace_back(std::make_unique<Started>(engine_));
    started.ends.resize(program.ranks, -1);
    started.id = network_.add(program, gpus, started);
    for (std::uint32_t rank = 0; rank < begins.size(); ++rank) {
      if (begins[rank] == kNowhere || program.ranks <= rank) continue;
      engine_.queue().at(TimePoint{Duration{begins[rank]}}, *this,
                         (started_.size() - 1) << 32 | rank);
    }
    return started_.size() - 1;
  }
  void run() { engine_.run(); }
  /// When each rank was over; -1: never.
  const std::vector<ChunkTime>& ends(std::size_t program) const { return started_[program]->ends; }
  std::uint64_t messages() const { return network_.messages(); }

 private:
  struct Started final : ChunkNetwork::Owner {
    explicit Started(Engine& e) : engine{e} {}
    void rank_over(std::uint32_t rank) override {
      ends[rank] = engine.now().time_since_epoch().count();
    }
    Engine& engine;
    ChunkNetwork::OperationId id{};
    std::vector<ChunkTime> ends;
  };
  void fire(std::uint64_t what) override {
    network_.begin(started_[what >> 32]->id, static_cast<std::uint32_t>(what));
  }

  Engine engine_;
  ChunkNetwork network_;
  std::vector<std::unique_ptr<Started>> started_;
};

/// One rank sends `slices` to another: 10 of port each, nothing else.
ChunkProgram pair(std::uint32_t slices, std::uint64_t window = 8) {
  nccl::Slices times;
  times.shape = nccl::Shape::Pairs;
  times.full = {1, slices, 0, 0, 10e-12, 0};
  times.window = window;
  return pair_program(times);
}

/// A ring of `ranks`: each step 3 before the port and 10 of it.
ChunkProgram ring(std::uint32_t ranks, std::uint32_t slices = 1, std::uint32_t lanes = 1) {
  nccl::Slices times;
  times.shape = nccl::Shape::Ring;
  times.steps = 2 * (ranks - 1);
  times.fixed_seconds = 100e-12;
  times.full = {1, slices, 3e-12, 0, 10e-12, 3e-12};
  times.window = 4;
  return collective_program(times, CollectiveKind::AllReduce, ranks, 1, 0, lanes);
}

ChunkProgram broadcast(std::uint32_t ranks, std::uint32_t slices, std::uint32_t root) {
  nccl::Slices times;
  times.shape = nccl::Shape::Chain;
  times.hop_seconds = 5e-12 * (ranks - 1);
  times.full = {1, slices, 0, 0, 10e-12, 0};
  return collective_program(times, CollectiveKind::Broadcast, ranks, 1, root);
}

TEST(ChunkQueue, GivesTheEarliestFirstAndEqualTimesInTheirOrder) {
  ChunkQueue queue;
  std::mt19937 random{7};
  ChunkTime now = 0;
  ChunkTime last = -1;
  std::uint32_t last_where = 0;
  std::uint32_t next = 0;
  for (int i = 0; i < 20'000; ++i) {
    for (int k = 0; k < 2; ++k) {
      const ChunkTime ahead = static_cast<ChunkTime>(random() % 8) << (random() % 30);
      if (next < 20'000) queue.push({now + ahead, 0, next++});
    }
    const ChunkTime expected = queue.next();
    const ChunkEvent event = queue.pop();
    ASSERT_EQ(event.when, expected);
    ASSERT_GE(event.when, last);
    if (event.when == last && event.where < last_where) {
      // Later in, earlier out is only right for what was pushed at the very time it is due.
      FAIL() << event.where << " overtook " << last_where;
    }
    last = now = event.when;
    last_where = event.where;
  }
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.next(), ChunkQueue::kNever);
}

TEST(ChunkPair, TakesThePortForEachSlice) {
  ChunkRun run{2};
  const auto p = run.add(pair(6), {0, 1}, {0, 0});
  run.run();
  EXPECT_EQ(run.ends(p), (std::vector<ChunkTime>{60, 60}));
  EXPECT_EQ(run.messages(), 6u);
}

TEST(ChunkPair, SenderEndsWithoutItsReceiverWhenAllFitsIntoTheBuffer) {
  ChunkRun run{2};
  const auto p = run.add(pair(6, 8), {0, 1}, {0, kNowhere});
  run.run();
  EXPECT_EQ(run.ends(p), (std::vector<ChunkTime>{60, -1}));
}

TEST(ChunkPair, SenderWaitsForCreditsOfALateReceiver) {
  // 4 of 6 slices fit: from 1000 on the receiver takes them, the last two follow.
  ChunkRun run{2};
  const auto p = run.add(pair(6, 4), {0, 1}, {0, 1000});
  run.run();
  EXPECT_EQ(run.ends(p), (std::vector<ChunkTime>{1020, 1020}));
}

TEST(ChunkPort, OfOneReceiverServesTwoSendersInTurn) {
  ChunkRun run{3};
  const auto a = run.add(pair(5), {0, 2}, {0, 0});
  const auto b = run.add(pair(5), {1, 2}, {0, 0});
  run.run();
  EXPECT_EQ(run.ends(a)[1], 90) << "10, 30, 50, 70, 90";
  EXPECT_EQ(run.ends(b)[1], 100);
}

TEST(ChunkPort, OfOneSenderServesFirstComeFirstServed) {
  ChunkRun run{3};
  const auto a = run.add(pair(2), {0, 1}, {0, 0});
  const auto b = run.add(pair(1), {0, 2}, {5, 0});
  run.run();
  EXPECT_EQ(run.ends(b)[0], 20) << "between the two slices of the other";
  EXPECT_EQ(run.ends(a)[0], 30);
}

TEST(ChunkPort, OfDifferentPairsDoNotDisturbEachOther) {
  ChunkRun run{4};
  const auto a = run.add(pair(5), {0, 1}, {0, 0});
  const auto b = run.add(pair(5), {2, 3}, {0, 0});
  run.run();
  EXPECT_EQ(run.ends(a)[0], 50);
  EXPECT_EQ(run.ends(b)[0], 50);
}

TEST(ChunkRing, TakesASendForEachStepAndOneStepThatOnlyReceives) {
  // 100 + 6 steps of 3 + 10, and the last one's 3.
  ChunkRun run{4};
  const auto p = run.add(ring(4), {0, 1, 2, 3}, {0, 0, 0, 0});
  run.run();
  EXPECT_EQ(run.ends(p), std::vector<ChunkTime>(4, 100 + 6 * 13 + 3));
  EXPECT_EQ(run.messages(), 4u * 6);
  EXPECT_EQ(ring(4).messages(), 4u * 6);
}

TEST(ChunkRing, OverlapsASliceOfAStepWithTheNextSliceOfTheOneBefore) {
  ChunkRun run{4};
  const auto p = run.add(ring(4, 2), {0, 1, 2, 3}, {0, 0, 0, 0});
  run.run();
  EXPECT_EQ(run.ends(p), std::vector<ChunkTime>(4, 100 + 6 * 2 * 13 + 2 * 3));
}

TEST(ChunkRing, EndsForAllWhenTheLateRankHasCaughtUp) {
  // What the others could do without it they have done: the late rank's own 100 and all its steps
  // remain, while its neighbours' slices lie ready for it.
  ChunkRun run{4};
  const auto p = run.add(ring(4), {0, 1, 2, 3}, {0, 0, 5000, 0});
  run.run();
  const ChunkTime alone = 100 + 6 * 13 + 3;
  for (const ChunkTime end : run.ends(p)) {
    EXPECT_GT(end, 5000 + 100 + 3 * 13);
    EXPECT_LE(end, 5000 + alone);
  }
}

TEST(ChunkRing, NeverEndsWithoutOneOfItsRanks) {
  ChunkRun run{4};
  const auto p = run.add(ring(4), {0, 1, 2, 3}, {0, 0, kNowhere, 0});
  run.run();
  EXPECT_EQ(run.ends(p), std::vector<ChunkTime>(4, -1));
}

TEST(ChunkRing, TwoOverTheSamePortsFillEachOthersGaps) {
  // Alone 13 a step; together the ports are never idle: 20 for a step of both.
  ChunkRun run{4};
  const auto a = run.add(ring(4), {0, 1, 2, 3}, {0, 0, 0, 0});
  const auto b = run.add(ring(4), {0, 1, 2, 3}, {0, 0, 0, 0});
  run.run();
  EXPECT_NEAR(static_cast<double>(run.ends(a)[0]), 100 + 6 * 20, 13);
  EXPECT_NEAR(static_cast<double>(run.ends(b)[0]), 100 + 6 * 20, 20);
}

TEST(ChunkRing, LanesShareThePortsOfTheirRanks) {
  // Two groups of channels with half of the bytes each.
  ChunkRun run{4};
  const auto p = run.add(ring(4, 1, 2), {0, 1, 2, 3}, {0, 0, 0, 0});
  run.run();
  EXPECT_EQ(run.messages(), 2u * 4 * 6);
  EXPECT_GT(run.ends(p)[0], 100 + 6 * 10);
  EXPECT_LE(run.ends(p)[0], 100 + 6 * 13 + 3);
}

TEST(ChunkChain, PassesSlicesOnWhileTheyStillComeIn) {
  // 20 slices of 10, and 5 for each of 3 ranks behind the root.
  ChunkRun run{4};
  const auto p = run.add(broadcast(4, 20, 1), {0, 1, 2, 3}, {0, 0, 0, 0});
  run.run();
  EXPECT_EQ(run.ends(p), (std::vector<ChunkTime>{200 + 3 * 5, 200, 200 + 5, 200 + 2 * 5}))
      << "one behind the other, the root first";
}

TEST(ChunkChain, HoldsItsSlicesBehindALateRank) {
  // The third rank of the chain comes at 1000: eight slices wait for it, the rest follow.
  ChunkRun run{4};
  const auto p = run.add(broadcast(4, 20, 0), {0, 1, 2, 3}, {0, 0, 1000, 0});
  run.run();
  EXPECT_EQ(run.ends(p)[3], 1000 + 200 + 5);
}

TEST(ChunkTree, GoesUpAndDownOverBothTreesOfTheNodes) {
  nccl::Slices times;
  times.shape = nccl::Shape::Tree;
  times.hop_seconds = 100e-12;
  times.full = {1, 1, 0, 0, 2e-12, 0};
  const ChunkProgram program = collective_program(times, CollectiveKind::AllReduce, 8, 4, 0);
  EXPECT_EQ(program.stages.size(), 8u * 2 * 2);
  // 7 ranks send up, 7 get something down, and the root turns around, in each of two trees.
  EXPECT_EQ(program.links.size(), 2u * (7 + 7 + 1));
  // The deepest is the second rank of a node that is two below the root: 3 hops up, 3 down.
  EXPECT_EQ(program.hop, 17) << "100 / 6";
  ChunkRun run{8};
  const auto p = run.add(program, {0, 1, 2, 3, 4, 5, 6, 7}, std::vector<std::uint32_t>(8, 0));
  run.run();
  for (const ChunkTime end : run.ends(p)) {
    EXPECT_GE(end, 80);
    EXPECT_LE(end, 130);
  }
}

TEST(ChunkAllToAll, KeepsEveryPortBusyAndNoneWaiting) {
  nccl::Slices times;
  times.shape = nccl::Shape::Pairs;
  times.full = {1, 4, 0, 70e-12, 10e-12, 70e-12};
  times.window = 4;
  const ChunkProgram program = collective_program(times, CollectiveKind::AllToAll, 8, 1, 0);
  EXPECT_EQ(program.links.size(), 8u * 7);
  ChunkRun run{8};
  const auto p = run.add(program, {0, 1, 2, 3, 4, 5, 6, 7}, std::vector<std::uint32_t>(8, 0));
  run.run();
  EXPECT_EQ(run.ends(p), std::vector<ChunkTime>(8, 4 * 70));
}

TEST(ChunkCopy, SharesThePortsWithSlices) {
  // Alone 1000 bytes at 1 byte a picosecond; beside a sender of as much to the same GPU, both
  // take about twice as long.
  ChunkRun alone{2};
  const auto a = alone.add(copy_program(1'000'000'000, 1e12, 1e12), {0, 1}, {0});
  const auto b = alone.add(copy_program(1'000'000'000, 1e12, 1e12), {0, 1}, {0});
  alone.run();
  EXPECT_NEAR(static_cast<double>(alone.ends(a)[0]), 2e9, 2e6);
  EXPECT_NEAR(static_cast<double>(alone.ends(b)[0]), 2e9, 2e6);
}

TEST(ChunkNetwork, SlowsDownWhereTheMemoryIsBusy) {
  Engine engine;
  ChunkNetwork network{engine, 2};
  network.slow(1, 1.5);
  struct Last final : ChunkNetwork::Owner {
    void rank_over(std::uint32_t) override { end = engine->now().time_since_epoch().count(); }
    Engine* engine = nullptr;
    ChunkTime end = 0;
  } last;
  last.engine = &engine;
  const auto id = network.add(pair(4), {0, 1}, last);
  network.begin(id, 0);
  network.begin(id, 1);
  engine.run();
  EXPECT_EQ(last.end, 4 * 15);
}

}  // namespace
}  // namespace foretrace::sim
