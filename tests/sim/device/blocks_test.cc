// Who gets which SMs, on a GPU with 10 of them: blocks in waves, blocks that stay, second kernels.
#include "tests/sim/device/kernels_on_a_gpu.h"

namespace foretrace::sim {
namespace {

/// 23 of 10 us and a last wave of 8 us, on seven SMs of 5 us.
cost::KernelCost product_with_a_short_last_wave() {
  cost::KernelCost cost = product(30, false);
  cost.waves.last_time = 8_us;
  cost.waves.early_sms = 7;
  cost.waves.early_time = 5_us;
  cost.alone = 28_us;
  return cost;
}

TEST_F(BlocksOfKernels, OfALastWaveLeaveSomeSmsSooner) {
  starts.at(0_us, large, product_with_a_short_last_wave());
  starts.at(1_us, small, product(7, false));
  starts.at(2_us, next, product(8, false));
  engine.run();
  EXPECT_NEAR(large.ended, 28, 0.01) << "the others do not make it longer";
  EXPECT_NEAR(small.began, 25, 0.01);
  EXPECT_NEAR(next.began, 28, 0.01) << "of the eight, all that the seven leave free";
}

TEST_F(BlocksOfKernels, OfALastWaveAreTheLastThatFindAnSm) {
  starts.at(0_us, large, product_with_a_short_last_wave());
  starts.at(1_us, small, product(5, false), -5);  // from 10 to 20 us on five SMs
  engine.run();
  EXPECT_NEAR(small.began, 10, 0.01);
  // Five blocks of the second wave run until 20 us. Then five more of it (to 30 us), the three long
  // ones of the last (to 28) and two of the short ones (to 25), and two and three more of these.
  EXPECT_NEAR(large.ended, 33, 0.01);
}

TEST_F(BlocksOfKernels, ThatStayLeaveTheSmsOfAShorterShare) {
  starts.at(0_us, large, product(27, true));  // seven SMs take three tiles, three take two
  starts.at(1_us, small, product(3, true), -5);
  engine.run();
  EXPECT_EQ(small.began, 20) << "whatever its priority";
  EXPECT_EQ(large.ended, 30);
}

TEST_F(BlocksOfKernels, ThatStayInWholeWavesLetNobodyInBeforeTheirEnd) {
  starts.at(0_us, large, product(30, true));
  starts.at(1_us, small, product(1, true), -5);
  starts.at(30_us, next, product(30, true));
  engine.run();
  EXPECT_EQ(small.began, 30);
  EXPECT_EQ(next.began, 30) << "on the nine SMs beside it";
  EXPECT_EQ(next.ended, 70) << "its last block has three tiles too, and begins at 40";
}

TEST_F(BlocksOfKernels, ThatBeginLateBesideNcclHaveTwoTilesOfTheirOwn) {
  device.occupy(next, 2, 0);
  starts.at(0_us, large, product(20, true));
  engine.run();
  EXPECT_EQ(large.ended, 40) << "two tiles on each of eight SMs, then two more on two of them";
}

TEST_F(BlocksOfKernels, ThatBeganInTimeTakeAllButTheLateOnesOwnTiles) {
  device.occupy(next, 2, 0);
  starts.at(0_us, large, product(40, true));
  engine.run();
  // 20 tiles are nobody's: eight of them from 20 us on, eight from 30 and four from 40, when four
  // SMs are free for the last two blocks.
  EXPECT_EQ(large.ended, 60);
}

TEST_F(BlocksOfKernels, OfWhichSomeHaveOneTileEndLateByThatOne) {
  device.occupy(next, 2, 0);
  starts.at(0_us, large, product(12, true));
  engine.run();
  EXPECT_EQ(large.ended, 20)
      << "of eight two have two tiles; the late ones have one, from 10 us on";
}

TEST_F(BlocksOfKernels, InTurnMakeWayForAMoreUrgentKernelAfterTheirWave) {
  starts.at(0_us, large, product(30, false));
  starts.at(1_us, small, product(1, true), -5);
  engine.run();
  EXPECT_EQ(small.began, 10);
}

TEST_F(BlocksOfKernels, OfClustersRunOnTwoOfTenSms) {
  starts.at(0_us, large, product(18, false));
  starts.at(1_us, small, product(1, true));
  engine.run();
  EXPECT_EQ(small.began, 10);
}

TEST_F(BlocksOfKernels, OfClustersTakeThePlaceOfTheOneBefore) {
  starts.at(0_us, small, product(1, true));
  starts.at(1_us, large, product(9, false));
  starts.at(10_us, next, product(1, true));
  engine.run();
  EXPECT_EQ(next.began, 10) << "where the first one was until then";
}

/// Takes 10 us on all SMs, and as long on four.
cost::KernelCost memory_bound() {
  cost::KernelCost cost;
  cost.alone = 10_us;
  cost.sms = 10;
  cost.enough_sms = 4;
  cost.room.data_waits = 1;
  return cost;
}

TEST_F(BlocksOfKernels, LeaveEnoughSmsForAMemoryBoundKernel) {
  starts.at(0_us, large, product(6, false));
  starts.at(0_us, small, memory_bound());
  engine.run();
  EXPECT_EQ(small.ended, 10);
}

TEST_F(BlocksOfKernels, LeaveTooFewSmsForAMemoryBoundKernel) {
  starts.at(0_us, large, product(8, false));
  starts.at(0_us, small, memory_bound());
  engine.run();
  EXPECT_EQ(small.ended, 15) << "half of its work in 10 us on two SMs, the other half in 5 on all";
}

TEST_F(BlocksOfKernels, OfNcclTakeTheirShareOfTheMemoryOnce) {
  cost::KernelCost all = memory_bound();
  all.enough_sms = 0;
  device.occupy(next, 2, 0);
  starts.at(0_us, small, memory_bound());
  starts.at(20_us, large, all);
  engine.run();
  EXPECT_EQ(small.ended, 12.5) << "on eight of ten SMs, though four would be enough";
  EXPECT_EQ(large.ended, 32.5);
}

TEST_F(BlocksOfKernels, LeaveRoomForKernelsOfTheDriver) {
  cost::KernelCost spin = product(10, false);
  spin.room.leaves_room = true;
  cost::KernelCost memset = memory_bound();
  memset.room.takes_no_sm = true;
  starts.at(0_us, large, spin);
  starts.at(1_us, small, memset);
  engine.run();
  EXPECT_EQ(small.began, 1);
  EXPECT_EQ(small.ended, 11);
}

TEST_F(BlocksOfKernels, ThatAreTheLastOfAMemoryBoundKernelLeaveRoomForAnother) {
  cost::KernelCost first = memory_bound();
  first.room.last_blocks = 3_us;
  cost::KernelCost second = memory_bound();
  second.alone = 1_us;
  starts.at(0_us, large, first);
  starts.at(1_us, small, second);
  starts.at(1_us, next, product(1, false));
  engine.run();
  EXPECT_EQ(small.began, 7);
  EXPECT_EQ(large.ended, 10);
  EXPECT_EQ(next.began, 10) << "a tile takes a whole SM";
}

TEST_F(BlocksOfKernels, AreWaitedForWithoutHoldingAnSm) {
  cost::KernelCost busy = memory_bound();
  busy.alone = 100_us;
  busy.room.drain = 5_us;
  busy.room.drain_of_all = 40_us;
  cost::KernelCost urgent = product(1, false);
  cost::KernelCost whole = product(1, false);
  whole.room.fills_an_sm = true;
  starts.at(0_us, large, busy);
  starts.at(1_us, small, urgent, -5);
  starts.at(1_us, next, whole, -5);
  engine.run();
  EXPECT_EQ(small.began, 6);
  EXPECT_EQ(next.began, 41);
  EXPECT_EQ(large.ended, 100) << "nine SMs are enough for it";
}

/// Of higher priority from 1 us on beside a kernel that uses the memory, whose blocks take 5 us
/// each.
struct UrgentKernel : BlocksOfKernels {
  double ends_beside(Duration busy_for, const cost::KernelCost& urgent) {
    cost::KernelCost busy = memory_bound();
    busy.alone = busy_for;
    busy.room.drain = 5_us;
    starts.at(0_us, large, busy);
    starts.at(1_us, small, urgent, -5);
    engine.run();
    return small.ended;
  }
};

TEST_F(UrgentKernel, WaitsForItsDataToo) {
  cost::KernelCost urgent = product(1, false);
  urgent.room.data_waits = 3;
  EXPECT_EQ(ends_beside(100_us, urgent), 31) << "5 us for its place, 10, and three times 5";
}

TEST_F(UrgentKernel, WaitsForItsSecondOnesPlaceAndData) {
  cost::KernelCost urgent = product(1, false);
  urgent.then = 2_us;
  EXPECT_EQ(ends_beside(100_us, urgent), 28) << "5 us for its place, 10, then 2 and twice 5";
}

TEST_F(UrgentKernel, WaitsForNoDataOnceTheOtherHasEnded) {
  cost::KernelCost urgent = memory_bound();
  urgent.alone = 1_us;
  EXPECT_EQ(ends_beside(10_us, urgent), 11) << "4 us until the busy one ends, and its own";
}

TEST_F(BlocksOfKernels, OfASecondKernelWaitForTheirOwnTurn) {
  cost::KernelCost two = product(1, false);
  two.then = 5_us;
  two.waves.staggers = true;  // as every product in parts
  starts.at(0_us, large, product(30, true));
  starts.at(1_us, small, two);
  starts.at(2_us, next, product(10, true));
  engine.run();
  EXPECT_EQ(small.began, 30);
  EXPECT_EQ(next.began, 30) << "on nine SMs, and on the tenth at 40";
  EXPECT_EQ(small.ended, 45) << "its sum follows its parts, at 40";
}

TEST_F(BlocksOfKernels, OfASecondKernelFollowAtOnce) {
  cost::KernelCost two = product(1, false);
  two.then = 5_us;
  starts.at(0_us, large, product(30, false));
  starts.at(1_us, small, two, -5);
  engine.run();
  EXPECT_EQ(small.began, 10) << "behind a wave";
  EXPECT_EQ(small.ended, 25) << "before the next wave";
}

}  // namespace
}  // namespace foretrace::sim
