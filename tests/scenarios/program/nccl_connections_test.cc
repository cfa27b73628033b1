// Who waits for whom while pairs of ranks connect.
#include "scenarios/program/nccl_connections.h"

#include <gtest/gtest.h>

namespace foretrace {
namespace {

using Pair = NcclConnections::Pair;

TEST(NcclConnections, WaitForTheOtherEndOfTheSamePairAndDirection) {
  NcclConnections two{2};
  const auto sender = two.connect(0, {{0, 1}});
  EXPECT_FALSE(two.is_done(*sender));
  EXPECT_EQ(two.missing(*sender).rank, 1U);
  EXPECT_TRUE(two.connect(1, {{1, 0}})) << "the other way is another connection";
  EXPECT_FALSE(two.is_done(*sender));
  const auto receiver = two.connect(1, {{0, 1}});
  EXPECT_TRUE(two.is_done(*sender));
  EXPECT_TRUE(two.is_done(*receiver));
  EXPECT_FALSE(two.connect(0, {{0, 1}, {0, 0}})) << "once; and a rank is connected with itself";
}

TEST(NcclConnections, MayServeBothDirections) {
  NcclConnections two{2, true};
  two.connect(0, {{0, 1}});
  EXPECT_TRUE(two.connect(1, {{1, 0}})) << "neither has met the other";
  two.connect(1, {{0, 1}});
  EXPECT_FALSE(two.connect(0, {{1, 0}}));
}

TEST(NcclConnections, OfOneGroupAreDoneTogether) {
  NcclConnections three{3};
  const auto group = three.connect(0, {{0, 1}, {2, 0}});
  const auto receiver = three.connect(1, {{0, 1}});
  EXPECT_FALSE(three.is_done(*receiver)) << "rank 0 still waits for rank 2";
  EXPECT_TRUE(three.missing(*receiver).has_come);
  const auto last = three.first_missing(*receiver);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->rank, 2U);
  EXPECT_EQ(last->pair, (Pair{2, 0}));
  three.connect(2, {{2, 0}});
  EXPECT_TRUE(three.is_done(*group));
  EXPECT_TRUE(three.is_done(*receiver));
}

/// A chain of ranks that each receive from the one before and send to the next, in one group.
TEST(NcclConnections, HoldUpWhoIsTwoRanksAwayAtMost) {
  NcclConnections ring{8};
  std::vector<std::uint32_t> setups;
  for (std::uint32_t rank = 0; rank < 7; ++rank) {
    std::vector<Pair> pairs{{rank, rank + 1}};
    if (rank > 0) pairs.push_back({rank - 1, rank});
    setups.push_back(*ring.connect(rank, pairs));
  }
  for (std::uint32_t rank = 0; rank < 7; ++rank) {
    EXPECT_EQ(ring.is_done(setups[rank]), rank < 5) << "rank 7 never comes: " << rank;
  }
  EXPECT_EQ(ring.take_done().size(), 5U);
}

TEST(NcclConnections, OfAllWithAllTakeWorkInProportionToTheirNumber) {
  constexpr std::uint32_t kRanks = 300;
  NcclConnections all{kRanks};
  std::uint32_t last = 0;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    std::vector<Pair> pairs;
    for (std::uint32_t other = 0; other < kRanks; ++other) {
      if (other == rank) continue;
      pairs.push_back({rank, other});
      pairs.push_back({other, rank});
    }
    last = *all.connect(rank, pairs);
  }
  EXPECT_EQ(all.take_done().size(), kRanks);
  EXPECT_TRUE(all.is_done(last));
  EXPECT_LT(all.steps_taken(), 10U * kRanks * kRanks);
}

}  // namespace
}  // namespace foretrace
