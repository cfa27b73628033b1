// Kernels of libraries and the framework's time, derived.
#include "models/cost/library.h"

#include <gtest/gtest.h>

#include "tests/models/cost/costed_machine.h"

namespace foretrace::cost {
namespace {

using namespace literals;

TEST(LibraryCost, IsAFixedPartAndBytesOverTheKindsRate) {
  const Machine machine = machine_of(
      {{Param::SmCount, 10}, {Param::LibrarySoftmaxBase, 2e-6}, {Param::LibrarySoftmaxRate, 1e12}});
  const KernelCost cost =
      answer(machine, library_cost, LibraryWork{.kernel = KernelKind::Softmax, .bytes = 3e6});
  EXPECT_EQ(cost.alone, 5_us);
  EXPECT_EQ(cost.clock.share, 0) << "the machine says nothing of the clock";
  EXPECT_DOUBLE_EQ(cost.hbm_bytes_per_second, 3e6 / 5e-6);
}

TEST(LibraryCost, TakesAttentionsRateByTheSizeOfItsHeads) {
  const Machine machine = machine_of({{Param::SmCount, 10},
                                      {Param::LibraryAttentionForwardBase, 1e-6},
                                      {Param::LibraryAttentionForwardRate64, 1e12},
                                      {Param::LibraryAttentionForwardRate128, 3e12}});
  const auto alone = [&](double width) {
    const LibraryWork work{.kernel = KernelKind::AttentionForward, .flops = 6e6, .width = width};
    return answer(machine, library_cost, work).alone;
  };
  EXPECT_EQ(alone(32), 7_us);
  EXPECT_EQ(alone(64), 7_us);
  EXPECT_EQ(alone(96), 4_us) << "half way: 2e12";
  EXPECT_EQ(alone(128), 3_us);
  EXPECT_GT(alone(192), 3_us);
  EXPECT_NEAR(to_seconds(alone(256)), 1e-6 + 6e6 / (0.96 * 3e12), 1e-11);
  EXPECT_EQ(alone(512), alone(256));
}

TEST(LibraryCost, FillsATileOf128WithNarrowerHeadsOnHopper) {
  const Machine machine = machine_of({{Param::SmCount, 10},
                                      {Param::ProductsHalfRate, 1e15},
                                      {Param::LibraryAttentionForwardBase, 1e-6},
                                      {Param::LibraryAttentionForwardRate64, 1e12},
                                      {Param::LibraryAttentionForwardRate128, 3e12}});
  const LibraryWork work{.kernel = KernelKind::AttentionForward, .flops = 6e6, .width = 80};
  EXPECT_NEAR(to_seconds(answer(machine, library_cost, work).alone), 1e-6 + 6e6 / (3e12 * 80 / 128),
              1e-11);
}

TEST(LibraryCost, FollowsTheClockAsFarAsTheMachineSays) {
  const Machine machine = machine_of({{Param::SmCount, 10},
                                      {Param::LibraryPointwiseBase, 0},
                                      {Param::LibraryPointwiseRate, 1e12},
                                      {Param::LibraryMemoryClock, 0.5}});
  const LibraryWork work{.kernel = KernelKind::Pointwise, .bytes = 1e6};
  EXPECT_EQ(answer(machine, library_cost, work).clock.share, 0.5);
}

TEST(LibraryCost, LosesClockByItsPowerBeyondWhatIsFree) {
  const Machine machine = machine_of({{Param::SmCount, 10},
                                      {Param::LibraryPointwiseBase, 0},
                                      {Param::LibraryPointwiseRate, 1e12},
                                      {Param::LibraryMemoryPower, 0.4},
                                      {Param::ProductsClockSlope, 0.5},
                                      {Param::ProductsFreeRandom, 0.6}});
  const KernelCost cost =
      answer(machine, library_cost, LibraryWork{.kernel = KernelKind::Pointwise, .bytes = 1e6});
  EXPECT_DOUBLE_EQ(cost.clock.lost, 0.5 * (0.4 - 0.6)) << "below the limit: room for others";
  EXPECT_TRUE(cost.clock.averages);
}

TEST(FrameworkTime, IsTheKindsTimeForEachCall) {
  const Machine machine = machine_of({{Param::EagerBackward, 7e-6}});
  EXPECT_EQ(answer(machine, framework_time, FrameworkCalls{FrameworkWork::Backward, 3, 1}), 21_us);
}

}  // namespace
}  // namespace foretrace::cost
