// Operators on the CPU and reads of files: who shares what. Every rate is 1000 bytes or flop per
// us.
#include <gtest/gtest.h>

#include "tests/sim/unit_machine.h"

namespace foretrace::test {
namespace {

/// Four cores of 1000 flop and 1000 bytes per us, memory of 2000, storage of 1500.
Machine four_cores() {
  Machine machine = unit_machine();
  const auto set = [&](Param param, double value) {
    machine.set(param, {value, 0, ParameterClass::Assumed, "", ""});
  };
  set(Param::HostCores, 4);
  set(Param::HostCoreFlops, 1e9);
  set(Param::HostCoreMemory, 1e9);
  set(Param::HostMemoryBandwidth, 2e9);
  set(Param::HostParallelCall, 1e-6);
  machine.leave_out(Param::HostCoreBoth);
  set(Param::StorageBandwidth, 1.5e9);
  set(Param::StorageReader, 1e9);
  set(Param::StorageLatency, 1e-6);
  return machine;
}

double lasts(const Timeline& timeline, const std::string& label) {
  const Span span = host_spans(timeline, label).at(0);
  return us(span.end_ns - span.begin_ns);
}

/// Two host threads that begin at once, with an operation each.
Timeline at_once(const std::string& one, const std::string& other) {
  return predict(
      "buffers: {a: {memory: pinned, size: 1MB}, b: {memory: pinned, size: 1MB}, "
      "x: {memory: device, size: 1MB}}\n"
      "threads:\n  one: [" +
          one + "]\n  other: [" + other + "]\n",
      four_cores());
}

TEST(HostParallel, TakesEveryCore) {
  const Timeline alone = at_once("host_parallel: {id: a, flops: 40000}", "host_barrier: {name: x}");
  EXPECT_EQ(lasts(alone, "a"), 11) << "four cores, and one us to wake them";
}

TEST(HostParallel, OfTwoThreadsSharesTheCores) {
  const Timeline both =
      at_once("host_parallel: {id: a, flops: 40000}", "host_parallel: {id: b, flops: 40000}");
  EXPECT_EQ(lasts(both, "a"), 21);
  EXPECT_EQ(lasts(both, "b"), 21);
}

TEST(HostParallel, OfFewThreadsLeavesCoresToOthers) {
  const Timeline both = at_once("host_parallel: {id: a, flops: 20000, threads: 2}",
                                "host_parallel: {id: b, flops: 20000, threads: 2}");
  EXPECT_NEAR(lasts(both, "a"), 10.192, 0.001) << "the second of four begins 0.192 us late";
  EXPECT_NEAR(lasts(both, "b"), 10.192, 0.001);
}

TEST(HostParallel, TakesAsLongAsItsMemoryWhereThatIsSlower) {
  const Timeline memory =
      at_once("host_parallel: {id: a, flops: 40000, bytes: 40000B}", "host_barrier: {name: x}");
  EXPECT_EQ(lasts(memory, "a"), 21) << "2000 bytes per us";
}

TEST(HostParallel, TakesAsLongAsItsArithmeticWhereThatIsSlower) {
  const Timeline arithmetic =
      at_once("host_parallel: {id: a, flops: 40000, bytes: 10000B}", "host_barrier: {name: x}");
  EXPECT_EQ(lasts(arithmetic, "a"), 11);
}

TEST(HostParallel, TakesAShareOfTheFasterOneWhereBothAreAsked) {
  Machine machine = four_cores();
  machine.set(Param::HostCoreBoth, {0.5, 0, ParameterClass::Assumed, "", ""});
  const Timeline both =
      predict("threads: {one: [host_parallel: {id: a, flops: 40000, bytes: 40000B}]}\n", machine);
  EXPECT_EQ(lasts(both, "a"), 26) << "20 us of memory and half of 10";
}

TEST(HostParallel, SharesTheMemoryWithACopyToTheGpu) {
  const Timeline both = at_once("host_parallel: {id: a, bytes: 20000B}",
                                "memcpy: {id: c, src: a, dst: x, size: 20000B}");
  // From where the copy begins, 2 us in, both get 1000 bytes per us; alone it would be 11 us.
  EXPECT_NEAR(lasts(both, "a"), 19, 1);
}

TEST(ReadFile, GetsWhatOneReaderCan) {
  const Timeline alone =
      at_once("read_file: {id: a, dst: a, size: 30000B}", "host_barrier: {name: x}");
  EXPECT_EQ(lasts(alone, "a"), 31) << "1000 bytes per us, and one us";
}

TEST(ReadFile, SharesTheStorageWithOtherReaders) {
  const Timeline both = at_once("read_file: {id: a, dst: a, size: 30000B}",
                                "read_file: {id: b, dst: b, size: 30000B}");
  EXPECT_EQ(lasts(both, "a"), 41) << "750 for each of two";
}

TEST(ReadFile, OfNothingTakesItsLatency) {
  EXPECT_EQ(lasts(at_once("read_file: {id: a, dst: a, size: 0B}", "host_barrier: {name: x}"), "a"),
            1);
}

}  // namespace
}  // namespace foretrace::test
