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
  EXPECT_EQ(pool.allocate(3, mebibytes(30)), Bytes{});
}

TEST(MemoryPool, GivesBackThePiecesThatNobodyUses) {
  MemoryPool pool;
  pool.allocate(0, mebibytes(1));
  pool.allocate(1, mebibytes(64));
  pool.free(1);
  EXPECT_EQ(pool.trim(), mebibytes(64));
  EXPECT_EQ(pool.trim(), Bytes{});
  pool.free(0);
  EXPECT_EQ(pool.trim(), mebibytes(32));
  EXPECT_EQ(pool.allocate(2, mebibytes(1)), mebibytes(32)) << "cold again";
}

}  // namespace
}  // namespace foretrace::sim
