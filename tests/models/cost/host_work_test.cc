// What operators on the CPU and reads of files take, derived.
#include "models/cost/host_work.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/models/cost/costed_machine.h"

namespace foretrace::cost {
namespace {

using namespace literals;
using enum Param;

/// Eight cores of 10 Gflop/s and 2 GB/s, memory of 12 GB/s.
const Machine& host_with_cores() {
  static const Machine kMachine = machine_of({{HostCores, 8},
                                              {HostCoreFlops, 10e9},
                                              {HostCoreMemory, 2e9},
                                              {HostMemoryBandwidth, 12e9},
                                              {HostParallelCall, 5e-6},
                                              {StorageBandwidth, 3e9},
                                              {StorageReader, 1e9},
                                              {StorageLatency, 100e-6}});
  return kMachine;
}

Duration takes(double flops, Bytes bytes, std::uint32_t threads) {
  return answer(host_with_cores(), parallel_time, ParallelWork{flops, bytes, threads});
}

TEST(ParallelTime, OfArithmeticFallsWithEveryCore) {
  EXPECT_EQ(takes(1e6, {}, 1), 100_us) << "its own thread";
  EXPECT_NEAR(to_us(takes(1e6, {}, 4)), 25 + 5 * std::pow(3.0 / 7, 1.5), 1e-3);
  EXPECT_EQ(takes(8e6, {}, 0), 105_us) << "all eight";
  EXPECT_EQ(takes(8e6, {}, 100), 105_us) << "no more than there are";
}

TEST(ParallelTime, OfMemoryFallsUntilTheMemoryIsFull) {
  EXPECT_EQ(takes(0, {240'000}, 1), 120_us) << "2 GB/s";
  EXPECT_NEAR(to_us(takes(0, {240'000}, 4)), 31.403, 1e-3) << "8 GB/s";
  EXPECT_EQ(takes(0, {240'000}, 0), 25_us) << "12 GB/s, not 16";
}

TEST(ParallelTime, OfBothIsTheSlowerOnes) {
  EXPECT_EQ(takes(8e6, {240'000}, 0), 105_us);
  EXPECT_EQ(takes(8e5, {240'000}, 0), 25_us);
  EXPECT_EQ(takes(0, {}, 0), 5_us) << "nothing to do";
}

TEST(ParallelTime, OfBothIsTheSlowerOnesAndAShareOfTheOthers) {
  Machine machine = host_with_cores();
  machine.set(HostCoreBoth, {.value = 0.5, .from = {}, .range = {}});
  const auto takes_there = [&](double flops, Bytes bytes) {
    return answer(machine, parallel_time, ParallelWork{flops, bytes, 1});
  };
  EXPECT_EQ(takes_there(1e6, {160'000}), 140_us) << "100 us of arithmetic and 80 of memory";
  EXPECT_EQ(takes_there(4e5, {160'000}), 100_us);
  EXPECT_EQ(takes_there(1e6, {}), 100_us) << "nothing to wait for";
}

/// Eight hardware threads of four cores: four of them compute 32 Gflop/s, 0.8 of four times 10,
/// and all of them 44.
TEST(ParallelTime, OfHardwareThreadsIsOnALineBetweenWhatWasMeasured) {
  Machine machine = host_with_cores();
  machine.set(HostHalfFlops, {.value = 0.8, .from = {}, .range = {}});
  machine.set(HostAllFlops, {.value = 0.55, .from = {}, .range = {}});
  machine.set(HostHalfMemory, {.value = 0.75, .from = {}, .range = {}});
  Reading read{machine};
  EXPECT_DOUBLE_EQ(parallel_flops(read, 1), 10e9);
  EXPECT_NEAR(parallel_flops(read, 2), 10e9 + 22e9 / 3, 1) << "a third of the way to four";
  EXPECT_DOUBLE_EQ(parallel_flops(read, 4), 32e9);
  EXPECT_DOUBLE_EQ(parallel_flops(read, 6), 38e9) << "half of the way to eight";
  EXPECT_DOUBLE_EQ(parallel_flops(read, 0), 44e9);
  EXPECT_DOUBLE_EQ(parallel_bandwidth(read, 4), 6e9) << "not 8";
  EXPECT_DOUBLE_EQ(parallel_bandwidth(read, 8), 12e9);
}

TEST(ReadFileTime, IsWhatOneReaderGets) {
  EXPECT_EQ(answer(host_with_cores(), read_file_time, Bytes{1'000'000}), 1100_us);
  EXPECT_EQ(answer(host_with_cores(), read_file_time, Bytes{0}), 100_us);
}

}  // namespace
}  // namespace foretrace::cost
