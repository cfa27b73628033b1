// A kernel's blocks in waves, on a GPU with 10 SMs: what runs beside a product's.
#include "tests/sim/device/kernels_on_a_gpu.h"

namespace foretrace::sim {
namespace {

/// An older product: `blocks` tiles of 10 us each.
cost::KernelCost older_product(std::uint32_t blocks) {
  cost::KernelCost cost = product(blocks, false);
  cost.waves.staggers = true;
  return cost;
}

/// One block of 1 us.
cost::KernelCost tiny() {
  cost::KernelCost cost = product(1, false);
  cost.alone = cost.waves.block_time = 1_us;
  return cost;
}

TEST_F(BlocksOfKernels, OfClustersAreNotKeptWaitingByProductsThatComeLater) {
  std::vector<Owner> later(6, Owner{engine});
  starts.at(0_us, large, older_product(30));
  starts.at(1_us, small, product(10, true));
  for (std::size_t i = 0; i < later.size(); ++i) {
    starts.at(2_us + 10_us * i, later[i], older_product(30));
  }
  engine.run();
  EXPECT_LT(small.began, 31);
}

TEST_F(BlocksOfKernels, BesideThoseOfAProductTakeLonger) {
  cost::KernelCost nvjet = product(9, true);
  starts.at(0_us, large, nvjet);
  starts.at(2_us, small, tiny());
  cost::KernelCost older = older_product(9);
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
