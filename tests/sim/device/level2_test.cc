// What of a kernel's memory others have evicted from the level-2 cache since, derived.
#include "sim/device/level2.h"

#include <gtest/gtest.h>

namespace foretrace::sim {
namespace {

std::vector<double> use(Level2& cache, std::vector<UsedMemory> memory) {
  std::vector<double> distances;
  for (const LastUse& last : cache.use(memory)) distances.push_back(last.distance);
  return distances;
}

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

TEST(Level2, CountsAllOfTwoKernelsMemoryWhereAllIsWritten) {
  Level2 cache{1000};
  const UsedMemory a{0, 0, 10}, b{1, 0, 10}, c{2, 0, 10};
  for (int turn = 0; turn < 2; ++turn) {
    use(cache, {a, b.write()});
    use(cache, {a, b, c.write()});
    use(cache, {c, a.write()});
  }
  EXPECT_EQ(use(cache, {a, b.write()}), (std::vector<double>{30, 30}));
  EXPECT_EQ(use(cache, {a, b, c.write()}), (std::vector<double>{30, 30, 30}));
  use(cache, {b.sum()});
  EXPECT_EQ(use(cache, {c, a.write()}), (std::vector<double>{30, 30})) << "a sum has read b";
}

TEST(Level2, CountsAllOfTwoKernelsMemoryWhereSomeIsOnlyRead) {
  Level2 cache{1000};
  const UsedMemory a{0, 0, 10}, b{1, 0, 10}, c{2, 0, 10};
  for (int turn = 0; turn < 2; ++turn) {
    use(cache, {a, b, c.write()});
    use(cache, {a, b.write()});
  }
  EXPECT_EQ(use(cache, {a, b, c.write()}), (std::vector<double>{30, 30, 30}));
}

TEST(Level2, KnowsWhatTheLastUseWrote) {
  Level2 cache{1000};
  const auto wrote = [&](const UsedMemory& memory) {
    return cache.use({&memory, 1}).front().wrote;
  };
  EXPECT_FALSE(wrote({0, 0, 10})) << "who knows what was before";
  EXPECT_FALSE(wrote(UsedMemory{0, 0, 10}.write())) << "it was read";
  EXPECT_TRUE(wrote({0, 0, 10}));
  EXPECT_FALSE(wrote({0, 0, 10}));
}

TEST(Level2, KnowsWhatWasOnlyReadSinceItWasWritten) {
  Level2 cache{1000};
  const UsedMemory read[] = {{0, 0, 10}};
  const UsedMemory in_place[] = {{0, 0, 10}, {0, 0, 10, true}};
  const auto only_read = [&](std::span<const UsedMemory> memory) {
    return cache.use(memory).front().only_read;
  };
  EXPECT_FALSE(only_read(read)) << "who knows what was before";
  EXPECT_TRUE(only_read(read));
  EXPECT_TRUE(only_read(in_place));
  EXPECT_FALSE(only_read(read)) << "it was written";
  EXPECT_TRUE(only_read(read));
}

}  // namespace
}  // namespace foretrace::sim
