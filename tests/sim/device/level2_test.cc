// What of a kernel's memory others have driven out of the level-2 cache since, derived.
#include "sim/device/level2.h"

#include <gtest/gtest.h>

namespace foretrace::sim {
namespace {

std::vector<double> use(Level2& cache, std::vector<UsedMemory> memory) { return cache.use(memory); }

TEST(Level2, CountsOtherMemorySinceTheLastUseAndTheKernelsOwn) {
  Level2 cache{1000};
  EXPECT_EQ(use(cache, {{0, 0, 10}}), std::vector<double>{1000}) << "as the pass before left it";
  EXPECT_EQ(use(cache, {{0, 0, 10}}), std::vector<double>{10}) << "itself";
  use(cache, {{1, 0, 20}, {2, 0, 30}});
  // 20 and 30 bytes in between, and 10 of its own.
  EXPECT_EQ(use(cache, {{0, 0, 10}}), std::vector<double>{60});
}

TEST(Level2, CountsMemoryThatIsReadAndWrittenInPlaceOnce) {
  Level2 cache{1000};
  use(cache, {{0, 0, 10}, {0, 0, 10}});
  EXPECT_EQ(use(cache, {{0, 0, 10}, {0, 0, 10}}), (std::vector<double>{10, 10}));
}

TEST(Level2, DoesNotFindMoreOfABufferThanWasUsed) {
  Level2 cache{1000};
  use(cache, {{0, 0, 10}});
  EXPECT_EQ(use(cache, {{0, 0, 50}}), std::vector<double>{1000});
  EXPECT_EQ(use(cache, {{0, 16, 10}}), std::vector<double>{1000}) << "another part of it";
}

}  // namespace
}  // namespace foretrace::sim
