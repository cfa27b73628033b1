// The pool of the stream-ordered allocator: when it grows, and what it gives back.
#include "sim/host/memory_pool.h"

#include <gtest/gtest.h>

namespace foretrace::sim {
namespace {

constexpr Bytes kMiB{1 << 20};
constexpr Bytes mebibytes(std::uint64_t count) { return {count * kMiB.count}; }

TEST(MemoryPool, GrowsByWholePiecesAndServesFromThem) {
  MemoryPool pool;
  EXPECT_EQ(pool.allocate(0, mebibytes(1)), mebibytes(32));
  EXPECT_EQ(pool.allocate(1, mebibytes(31)), Bytes{}) << "what is left of the first piece";
  EXPECT_EQ(pool.allocate(2, mebibytes(40)), mebibytes(64));
  pool.free(1);
  EXPECT_EQ(pool.allocate(3, mebibytes(30)), Bytes{}) << "what was freed";
}

// Measured (hw/laboratory/causes/pool.yaml on an H200): the first buffer is freed before the second is
// allocated, but not waited for.
TEST(MemoryPool, GrowsByWhatItsRoomBehindTheLastBlockLacks) {
  struct Case {
    std::uint64_t first, second, grows;  // MiB
  };
  for (const Case& one : {Case{9, 20, 0}, Case{9, 45, 32}, Case{9, 60, 64}, Case{32, 20, 0},
                          Case{32, 33, 64}, Case{40, 33, 0}, Case{40, 42, 32}, Case{40, 100, 96}}) {
    MemoryPool pool;
    pool.allocate(0, mebibytes(one.first));
    pool.free(0);
    EXPECT_EQ(pool.allocate(1, mebibytes(one.second)), mebibytes(one.grows))
        << one.second << " MiB after " << one.first;
  }
}

// Blind round 8 on an H200 and an H100: loops of buffers of several sizes, one after the other,
// grow the pool in their first turn only (temporary_buffers_101, temporary_buffers_103).
TEST(MemoryPool, JoinsNeighboursThatAreFree) {
  MemoryPool pool;
  const auto use = [&](std::uint32_t buffer, Bytes size) {
    const Bytes grows = pool.allocate(buffer, size);
    pool.free(buffer);
    return grows;
  };
  EXPECT_EQ(use(0, mebibytes(1)), mebibytes(32));
  EXPECT_EQ(use(1, mebibytes(16)), Bytes{});
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(use(2, mebibytes(12)), Bytes{}) << "a part of it";
    EXPECT_EQ(use(0, mebibytes(1)), Bytes{});
    EXPECT_EQ(use(1, mebibytes(16)), Bytes{}) << "all of it again";
  }
}

TEST(MemoryPool, GivesBackThePiecesThatNobodyUses) {
  MemoryPool pool;
  pool.allocate(0, mebibytes(1));
  pool.allocate(1, mebibytes(63));
  pool.free(1);
  EXPECT_EQ(pool.trim(), mebibytes(32)) << "the second piece; the first is in use";
  EXPECT_EQ(pool.trim(), Bytes{});
  EXPECT_EQ(pool.allocate(1, mebibytes(31)), Bytes{});
  pool.free(0);
  pool.free(1);
  EXPECT_EQ(pool.trim(), mebibytes(32));
  EXPECT_EQ(pool.allocate(2, mebibytes(1)), mebibytes(32)) << "cold again";
}

}  // namespace
}  // namespace foretrace::sim
