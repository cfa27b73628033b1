// A kernel's blocks in waves, on a GPU with 10 SMs: out of step, and what runs beside them.
#include "tests/sim/device/kernels_on_a_gpu.h"

namespace foretrace::sim {
namespace {

/// An older product: `blocks` tiles of 10 us each that end at different times.
cost::KernelCost out_of_step(std::uint32_t blocks) {
  cost::KernelCost cost = product(blocks, false);
  cost.staggers = true;
  return cost;
}

/// One block of 1 us.
cost::KernelCost tiny() {
  cost::KernelCost cost = product(1, false);
  cost.alone = cost.block_time = 1_us;
  return cost;
}

TEST_F(BlocksOfKernels, OutOfStepTakeAsLongInAllAsInStep) {
  std::vector<Owner> owners(3, Owner{engine});
  const std::uint32_t blocks[] = {30, 34, 39};
  for (std::size_t i = 0; i < owners.size(); ++i) {
    starts.at(100_us * i, owners[i], out_of_step(blocks[i]));
  }
  engine.run();
  EXPECT_NEAR(owners[0].ended, 30, 0.01);
  EXPECT_NEAR(owners[1].ended, 140, 0.01) << "the four of its last wave begin sooner";
  EXPECT_NEAR(owners[2].ended, 240, 0.01);
}

TEST_F(BlocksOfKernels, OutOfStepLeaveTheirLastSmsOneByOne) {
  starts.at(0_us, large, out_of_step(30));
  starts.at(1_us, small, tiny());
  starts.at(1_us, next, product(10, false));
  engine.run();
  EXPECT_LT(small.began, 29) << "in step it is 30";
  EXPECT_GT(small.began, 20) << "all blocks have an SM by then";
  EXPECT_GT(next.ended, 39);
  EXPECT_NEAR(large.ended, 30, 0.01);
}

TEST_F(BlocksOfKernels, OutOfStepLetUrgentOnesInAllThroughTheirLaterWaves) {
  constexpr std::size_t kUrgent = 8;
  std::vector<Owner> urgent(kUrgent, Owner{engine});
  starts.at(0_us, large, out_of_step(60));
  for (std::size_t i = 0; i < kUrgent; ++i) starts.at(46_us + 1_us * i, urgent[i], tiny(), -5);
  engine.run();
  for (std::size_t i = 0; i < kUrgent; ++i) {
    EXPECT_LT(urgent[i].began - 46 - static_cast<double>(i), 2) << i << ": in step it is 4 to 9";
  }
}

TEST_F(BlocksOfKernels, OutOfStepTakeTheirTimeOnFewerSmsToo) {
  constexpr std::uint32_t kHeld = 7;
  device.occupy(small, kHeld, 0);
  starts.at(0_us, large, out_of_step(34));
  starts.at(1000_us, next, product(34, false));
  engine.run();
  EXPECT_NEAR(large.ended, next.ended - 1000, 6) << "34 blocks on three SMs";
}

TEST_F(BlocksOfKernels, OfClustersAreNotKeptWaitingByProductsThatComeLater) {
  std::vector<Owner> later(6, Owner{engine});
  starts.at(0_us, large, out_of_step(30));
  starts.at(1_us, small, product(10, true));
  for (std::size_t i = 0; i < later.size(); ++i) {
    starts.at(2_us + 10_us * i, later[i], out_of_step(30));
  }
  engine.run();
  EXPECT_LT(small.began, 31);
}

TEST_F(BlocksOfKernels, BesideThoseOfAProductTakeLonger) {
  cost::KernelCost nvjet = product(9, true);
  starts.at(0_us, large, nvjet);
  starts.at(2_us, small, tiny());
  cost::KernelCost older = out_of_step(9);
  Owner third{engine}, fourth{engine};
  starts.at(100_us, next, older);
  starts.at(102_us, third, tiny());
  starts.at(200_us, fourth, tiny());
  engine.run();
  EXPECT_NEAR(small.ended - small.began, 2.1, 0.01);
  EXPECT_NEAR(third.ended - third.began, 1.4, 0.01);
  EXPECT_NEAR(fourth.ended - fourth.began, 1, 0.01) << "alone";
}

TEST_F(BlocksOfKernels, BesideThoseOfAProductTakeAsLongInAGraph) {
  starts.at(0_us, large, product(9, true));
  starts.at(2_us, small, tiny(), 0, true);
  engine.run();
  EXPECT_NEAR(small.ended - small.began, 1, 0.01);
}

}  // namespace
}  // namespace foretrace::sim
