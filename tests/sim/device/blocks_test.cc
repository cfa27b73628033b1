// Who gets which SMs, on a GPU with 10 of them: blocks in waves, blocks that stay, second kernels.
#include <gtest/gtest.h>

#include "sim/device/device.h"

namespace foretrace::sim {
namespace {

using namespace literals;

/// Notes when its kernel began and ended.
struct Owner final : KernelOwner {
  explicit Owner(Engine& on) : engine{on} {}
  void kernel_began() override { began = to_us(engine.now().time_since_epoch()); }
  void kernel_ended() override { ended = to_us(engine.now().time_since_epoch()); }
  Engine& engine;
  double began = -1, ended = -1;
};

/// `blocks` tiles of 10 us each.
cost::KernelCost product(std::uint32_t blocks, bool stays) {
  cost::KernelCost cost;
  cost.block_time = 10_us;
  cost.alone = 10_us * ((blocks + 9) / 10);
  cost.sms = std::min(blocks, 10U);
  cost.blocks = blocks;
  cost.keeps_its_sms = stays;
  return cost;
}

/// Starts kernels at given times.
struct Starts final : Handler {
  struct One {
    Owner* owner;
    cost::KernelCost cost;
    int priority;
  };
  Starts(Engine& on, Device& of) : engine{on}, device{of} {}
  void at(Duration time, Owner& owner, const cost::KernelCost& cost, int priority = 0) {
    engine.queue().at(TimePoint{time}, *this, kernels.size());
    kernels.push_back({&owner, cost, priority});
  }
  void fire(std::uint64_t which) override {
    device.start(*kernels[which].owner, kernels[which].cost, kernels[which].priority);
  }
  Engine& engine;
  Device& device;
  std::vector<One> kernels;
};

struct BlocksOfKernels : testing::Test {
  Engine engine;
  Device device{engine, {.sms = 10, .hbm_bytes_per_second = 1e12}};
  Starts starts{engine, device};
  Owner large{engine}, small{engine}, next{engine};
};

TEST_F(BlocksOfKernels, ThatStayLeaveTheSmsOfAShorterShare) {
  starts.at(0_us, large, product(27, true));  // seven SMs take three tiles, three take two
  starts.at(1_us, small, product(3, true), -5);
  engine.run();
  EXPECT_EQ(small.began, 20) << "however urgent";
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

TEST_F(BlocksOfKernels, InTurnMakeWayForAMoreUrgentKernelAfterTheirWave) {
  starts.at(0_us, large, product(30, false));
  starts.at(1_us, small, product(1, true), -5);
  engine.run();
  EXPECT_EQ(small.began, 10);
}

TEST_F(BlocksOfKernels, OfClustersNeedMoreThanAFewScatteredSms) {
  starts.at(0_us, large, product(18, false));  // leaves two SMs in its second wave
  starts.at(1_us, small, product(1, true));
  starts.at(1_us, next, product(1, false));
  engine.run();
  EXPECT_EQ(next.began, 10);
  EXPECT_EQ(small.began, 20) << "two of ten SMs are hardly beside each other";
}

TEST_F(BlocksOfKernels, OfASecondKernelWaitForTheirOwnTurn) {
  cost::KernelCost two = product(1, false);
  two.then = 5_us;
  starts.at(0_us, large, product(30, true));
  starts.at(1_us, small, two);
  starts.at(2_us, next, product(10, true));
  engine.run();
  EXPECT_EQ(small.began, 30);
  EXPECT_EQ(next.began, 30) << "on nine SMs, and on the tenth at 40";
  EXPECT_EQ(small.ended, 45) << "its sum runs from 40";
}

}  // namespace
}  // namespace foretrace::sim
