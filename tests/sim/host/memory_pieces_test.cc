// Small objects of cudaMalloc: which of them need a piece of their own.
#include "sim/host/memory_pieces.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/sim/unit_machine.h"

namespace foretrace::sim {
namespace {

Machine machine_with(const std::vector<std::pair<Param, double>>& seconds) {
  Machine machine = test::unit_machine();
  for (const auto& [param, value] : seconds) {
    machine.set(param, {value, 0, ParameterClass::Assumed, "", ""});
  }
  return machine;
}

constexpr Bytes kKi{1024};
constexpr Bytes kibibytes(std::uint64_t count) { return {count * kKi.count}; }

// Measured (hw/laboratory/host on an H200's host): of sixty-four objects of 512 KiB every fourth
// one takes as long as one of 2 MiB.
TEST(MemoryPieces, HoldAsManyObjectsAsFit) {
  MemoryPieces pieces;
  for (std::uint32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(pieces.allocate(i, kibibytes(512)), i % 4 != 0) << i;
  }
}

TEST(MemoryPieces, AreGivenBackWithTheirLastObject) {
  MemoryPieces pieces;
  EXPECT_FALSE(pieces.allocate(0, kibibytes(20)));
  EXPECT_TRUE(pieces.allocate(1, kibibytes(20)));
  EXPECT_TRUE(pieces.free(0)) << "the other one is still there";
  EXPECT_FALSE(pieces.free(1));
  EXPECT_FALSE(pieces.allocate(2, kibibytes(20))) << "nothing is there any more";
}

TEST(MemoryPieces, UseTheRoomOfWhatWasFreed) {
  MemoryPieces pieces;
  pieces.allocate(0, kibibytes(64));
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_TRUE(pieces.allocate(1, kibibytes(1283))) << turn;
    EXPECT_TRUE(pieces.free(1)) << turn;
  }
}

TEST(MemoryPieces, AreNotSharedWithWhatFillsThem) {
  MemoryPieces pieces;
  EXPECT_FALSE(pieces.allocate(0, kibibytes(2048)));
  EXPECT_FALSE(pieces.allocate(1, kibibytes(20)));
  EXPECT_FALSE(pieces.allocate(2, kibibytes(5000)));
  EXPECT_FALSE(pieces.free(2));
}

TEST(MemoryPieces, AreFoundAtOnceHoweverManyThereAreAndWere) {
  constexpr std::uint32_t kMany = 200'000;  // looked through one by one: minutes
  MemoryPieces pieces;
  for (std::uint32_t i = 0; i < kMany; ++i) {
    ASSERT_FALSE(pieces.allocate(0, kibibytes(20)));
    ASSERT_FALSE(pieces.free(0));
  }
  for (std::uint32_t i = 0; i < kMany; ++i) ASSERT_FALSE(pieces.allocate(i, kibibytes(1100)));
  EXPECT_TRUE(pieces.allocate(kMany, kibibytes(900)));
}

TEST(MemoryPieces, MakeSmallObjectsCheap) {
  const Machine machine = machine_with({{Param::HostMallocSmall, 2e-6},
                                        {Param::HostFreeSmall, 1e-6},
                                        {Param::HostMalloc, 50e-6},
                                        {Param::HostFree, 40e-6}});
  const Timeline t = test::predict(R"(
buffers: {x: {memory: device, size: 20KiB}, y: {memory: device, size: 20KiB}}
threads:
  main:
    - malloc: {id: first, buffer: x}
    - malloc: {id: second, buffer: y}
    - free: {id: one, buffer: x}
    - free: {id: last, buffer: y}
)",
                                   machine);
  EXPECT_GE(test::host_us(t, "first"), 50);
  EXPECT_NEAR(test::host_us(t, "second"), 2, 0.001);
  EXPECT_NEAR(test::host_us(t, "one"), 1, 0.001);
  EXPECT_GE(test::host_us(t, "last"), 40);
}

/// malloc_batches of 20_graph_network_minibatches (blind round written-8): 1283 KiB in a loop,
/// beside 64 KiB that stay.
TEST(MemoryPieces, HaveRoomBesideWhatWasAllocatedBeforeTheRun) {
  const Machine machine =
      machine_with({{Param::HostMallocSmall, 2e-6}, {Param::HostMalloc, 50e-6}});
  const Timeline t = test::predict(R"(
buffers: {w: {memory: device, size: 64KiB}, x: {memory: device, size: 1283KiB}}
threads: {main: [malloc: {id: room, buffer: x}]}
)",
                                   machine);
  EXPECT_NEAR(test::host_us(t, "room"), 2, 0.001);
}

/// small_blocks of 09_pinned_memory_by_size (blind round written-10).
TEST(MemoryPieces, HoldPinnedBlocksToo) {
  const Machine machine = machine_with({{Param::HostAllocSmall, 7e-6},
                                        {Param::HostFreeHostSmall, 10e-6},
                                        {Param::HostAllocLeast, 650e-6},
                                        {Param::HostFreeHostLeast, 250e-6}});
  const Timeline t = test::predict(R"(
buffers: {x: {memory: pinned, size: 5KiB}, y: {memory: pinned, size: 248KiB}, z: {memory: pinned, size: 3MiB}}
threads:
  main:
    - host_alloc: {id: first, buffer: x}
    - host_alloc: {id: second, buffer: y}
    - host_alloc: {id: large, buffer: z}
    - host_free: {id: one, buffer: x}
    - host_free: {id: last, buffer: y}
)",
                                   machine);
  EXPECT_GE(test::host_us(t, "first"), 650);
  EXPECT_NEAR(test::host_us(t, "second"), 7, 0.001);
  EXPECT_GE(test::host_us(t, "large"), 650);
  EXPECT_NEAR(test::host_us(t, "one"), 10, 0.001);
  EXPECT_GE(test::host_us(t, "last"), 250);
}

TEST(MemoryPieces, HoldPinnedBlocksBesideThoseOfBeforeTheRun) {
  const Machine machine =
      machine_with({{Param::HostAllocSmall, 7e-6}, {Param::HostAllocLeast, 650e-6}});
  const Timeline t = test::predict(R"(
buffers: {w: {memory: pinned, size: 64KiB}, x: {memory: pinned, size: 64KiB}}
threads: {main: [host_alloc: {id: room, buffer: x}]}
)",
                                   machine);
  EXPECT_NEAR(test::host_us(t, "room"), 7, 0.001);
}

TEST(MemoryPieces, OfNcclHaveTheirRoomTimeAndAgain) {
  MemoryPieces pieces;
  pieces.add_nccls();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(pieces.allocate(0, kibibytes(512)));
    EXPECT_TRUE(pieces.free(0)) << "NCCL's own is left in it";
  }
  EXPECT_FALSE(pieces.allocate(0, kibibytes(513)));
}

}  // namespace
}  // namespace foretrace::sim
