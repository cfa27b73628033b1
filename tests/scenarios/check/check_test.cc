// Warnings: programs that run, and are most likely not meant so.
#include "scenarios/check/check.h"

#include <gtest/gtest.h>

#include "tests/scenarios/reading.h"

namespace foretrace {
namespace {

using reading_test::problems_of;
using reading_test::scenario_with;

/// Two processes with a communicator `w`, a buffer `x` of 4 KiB, and `ops` of every process.
std::string two_ranks(const std::string& ops) {
  return "schema_version: 1\nname: a\nprocesses: 2\ncommunicators: {w: {members: all_devices}}\n"
         "buffers: {x: {memory: device, size: 4KiB}}\nthreads:\n  main:\n" +
         ops;
}
/// The same with operations of its own for each rank.
std::string two_ranks(const std::string& first, const std::string& second) {
  return two_ranks("    process: 0\n    ops:\n" + first + "  other:\n    process: 1\n    ops:\n" +
                   second);
}

TEST(CheckEvents, WarnsOfAnEventRecordedNowhere) {
  EXPECT_EQ(
      problems_of(scenario_with("event_record: {event: e2(0)}\n"
                                "stream_wait_event: {stream: s, event: e2(0)}\n"
                                "event_synchronize: {event: e2(1)}\n"
                                "stream_wait_event: {stream: s, event: e}")),
      "20:7 warning: event 'e2(1)' is recorded nowhere in this file | an event that was never "
      "recorded counts as complete: nothing waits here\n"
      "21:7 warning: event 'e' is recorded nowhere in this file | an event that was never "
      "recorded counts as complete: nothing waits here\n");
}

TEST(CheckEvents, FindsTheMemberOfAFamilyThatNoIterationRecords) {
  EXPECT_EQ(
      problems_of(scenario_with(
          "repeat: {index: i, times: 1000000000, ops: [{event_record: {event: e2(2 * i % 2)}}, "
          "{event_synchronize: {event: e2(i % 2)}}]}")),
      "18:92 warning: event 'e2(1)' is recorded nowhere in this file | an event that was never "
      "recorded counts as complete: nothing waits here\n");
}

TEST(CheckLayouts, NamesTheLeadingDimensionThatIsNoMultipleOf16Bytes) {
  const auto product = [](const std::string& more) -> std::string {
    const Diagnostics found = slow_layouts(reading_test::read(
        scenario_with("gemm: {type: bfloat16, a: x, b: x, c: y, " + more + "}")));
    return found.empty() ? "" : found.front().message;
  };
  const std::string slower = " is no multiple of 8, so cuBLAS takes a slower kernel";
  EXPECT_EQ(product("m: 64, n: 63, k: 64"), "");
  EXPECT_EQ(product("m: 64, n: 63, k: 64, transpose_b: true"),
            "n = 63 is no multiple of 8, so cuBLAS takes a far slower kernel");
  EXPECT_EQ(product("m: 64, n: 64, k: 62"), "k = 62" + slower);
  EXPECT_EQ(product("m: 64, n: 64, k: 62, transpose_b: true"), "") << "k leads nothing";
  EXPECT_EQ(product("m: 64, n: 64, k: 62, transpose_a: true, transpose_b: true"),
            "k = 62" + slower);
}

TEST(CheckSignals, WarnsOfASignalThatNothingGives) {
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\nsignals: {go: {count: 2}}\nthreads:\n"
                        "  main: [{host_signal: {signal: go(0)}}]\n"
                        "  other: [{host_wait: {signal: go(1)}}]\n"),
            "6:12 warning: nothing in this file gives the signal 'go(1)': this waits for ever\n");
}

TEST(CheckNccl, WarnsOfTheReceiveWithoutASend) {
  const std::string rest = "{comm: w, buffer: x, type: float32, peer: ";
  EXPECT_EQ(
      problems_of(two_ranks("      - nccl_send: " + rest + "1}\n", "      - nccl_recv: " + rest +
                                                                       "0}\n"
                                                                       "      - nccl_recv: " +
                                                                       rest + "0}\n")),
      "15:9 warning: rank 0 of 'w' sends to rank 1 once, and rank 1 receives 2 times: this one "
      "waits for ever\n");
}

TEST(CheckNccl, WarnsOfTheSendWithoutAReceive) {
  EXPECT_EQ(
      problems_of(two_ranks("      - nccl_send: {comm: w, buffer: x, type: float32, peer: 1}\n",
                            "      - host_compute: {duration: 1us}\n")),
      "10:9 warning: rank 0 of 'w' sends to rank 1 once, and rank 1 receives never: this one "
      "waits for ever where NCCL's buffers do not hold it\n");
}

TEST(CheckNccl, WarnsOfTransfersOfDifferentSize) {
  EXPECT_EQ(
      problems_of(two_ranks(
          "      - nccl_send: {comm: w, buffer: x, type: float32, peer: 1, size: 1KiB}\n",
          "      - nccl_recv: {comm: w, buffer: x, type: float32, peer: 0, size: 2KiB}\n")),
      "14:9 warning: rank 1 of 'w' receives 2048 B here, and rank 0 sends 1024 B in line 10\n");
}

TEST(CheckNccl, AcceptsARingWhosePeersDependOnTheProcess) {
  EXPECT_EQ(problems_of(two_ranks(
                "    - nccl_group:\n        ops:\n"
                "          - nccl_send: {comm: w, buffer: x, type: float32, peer: (process + 1) % "
                "processes}\n"
                "          - nccl_recv: {comm: w, buffer: x, type: float32, peer: (process - 1) % "
                "processes}\n")),
            "");
}

TEST(CheckNccl, WarnsWhenRanksCallCollectivesInDifferentOrder) {
  const std::string reduce = "      - nccl_all_reduce: {comm: w, buffer: x, type: float32}\n";
  const std::string gather = "      - nccl_all_gather: {comm: w, buffer: x, type: float32}\n";
  EXPECT_EQ(
      problems_of(two_ranks(reduce + gather, gather + reduce)),
      "15:9 warning: the ranks of 'w' call different collectives: call 1 of rank 1 is "
      "nccl_all_gather of 2048 B (line 15), and of rank 0 nccl_all_reduce of 4096 B (line 10) | "
      "all ranks must call the same collectives in the same order\n");
}

TEST(CheckNccl, WarnsWhenARankLeavesEarly) {
  const std::string reduce = "      - nccl_all_reduce: {comm: w, buffer: x, type: float32}\n";
  EXPECT_EQ(
      problems_of(two_ranks(reduce + reduce, reduce)),
      "11:9 warning: rank 0 of 'w' calls 2 collectives, and rank 1 calls 1: this one waits for "
      "ever\n");
}

TEST(CheckNccl, WarnsWhenARankNeverTakesPart) {
  EXPECT_EQ(
      problems_of(two_ranks("      - nccl_all_reduce: {comm: w, buffer: x, type: float32}\n",
                            "      - host_compute: {duration: 1us}\n")),
      "10:9 warning: rank 0 of 'w' calls 1 collective, and rank 1 calls 0: this one waits for "
      "ever\n");
}

TEST(CheckNccl, ComparesAsManyCallsAsItCanOfALongLoop) {
  const std::string loop =
      "      - repeat: {times: 10000000, ops: [{nccl_all_reduce: {comm: w, buffer: x, type: "
      "float32}}]}\n";
  EXPECT_EQ(problems_of(two_ranks(loop, loop)), "");
}

TEST(CheckNccl, WarnsOfSeveralRanksInOneThreadWithoutAGroup) {
  EXPECT_EQ(
      problems_of("schema_version: 1\nname: a\ndevices: 2\n"
                  "communicators: {w: {members: all_devices}}\n"
                  "buffers: {x: {memory: device, size: 4KiB, each: device}}\nthreads:\n"
                  "  main:\n    - for_each:\n        index: d\n        in: devices\n"
                  "        ops:\n"
                  "          - nccl_all_reduce: {comm: w(d), buffer: x(d), type: float32}\n"),
      "12:13 warning: one host thread calls collectives for 2 ranks of 'w' without nccl_group "
      "| the first call waits for the other ranks, which the same thread would call later\n");
}

TEST(CheckNccl, TheStreamMustBeOnTheCommunicatorsDevice) {
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\ndevices: 2\n"
                        "communicators: {w: {members: all_devices}}\n"
                        "buffers: {x: {memory: device, size: 4KiB, each: device}}\nthreads:\n"
                        "  main:\n    - nccl_all_reduce: {comm: w(1), stream: default(0), buffer: "
                        "x(0), type: float32}\n"),
            "8:7 error: stream 'default(0)' is on device 0, and this is the communicator of device "
            "1\n");
}

TEST(CheckNccl, OnlyMembersMayUseACommunicator) {
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\nprocesses: 3\n"
                        "communicators: {w: {members: [[0, 0], [2, 0]]}}\n"
                        "buffers: {x: {memory: device, size: 4KiB}}\nthreads:\n"
                        "  main: [{nccl_all_reduce: {comm: w, buffer: x, type: float32}}]\n"),
            "7:11 error: device 0 of process 1 is no member of communicator 'w'\n");
}

TEST(CheckNccl, ACommunicatorOfTheRunNeedsItsInitialisation) {
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\n"
                        "communicators: {w: {members: all_devices, init: op}}\n"
                        "buffers: {x: {memory: device, size: 4KiB}}\nthreads:\n"
                        "  main: [{nccl_all_reduce: {comm: w, buffer: x, type: float32}}]\n"),
            "6:11 error: communicator 'w' is declared with init: op, and no nccl_comm_init names "
            "it\n");
}

/// A process with a communicator `w` of two devices, buffers of both kinds of memory, and `ops`.
std::string registering(const std::string& ops, const std::string& environment = "") {
  return "schema_version: 1\nname: a\ndevices: 2\nenvironment: {" + environment +
         "}\ncommunicators: {w: {members: all_devices}}\n"
         "buffers: {n: {each: device, memory: nccl, size: 4KiB}, d: {memory: device, size: 4KiB}}\n"
         "threads:\n  main:\n"
         "    - for_each: {index: i, in: devices, ops: [nccl_comm_register: {comm: w(i), buffer: "
         "n(i)}]}\n" +
         ops;
}

TEST(CheckRegistrations, AcceptWhatIsGivenBackBeforeItIsFreed) {
  EXPECT_EQ(problems_of(registering("    - nccl_comm_register: {comm: w(0), buffer: n(0)}\n"
                                    "    - nccl_comm_deregister: {comm: w(0), buffer: n(0)}\n"
                                    "    - nccl_comm_deregister: {comm: w(0), buffer: n(0)}\n")),
            "");
}

TEST(CheckRegistrations, RefuseWhatNcclWouldRefuseOrPeersWouldMiss) {
  EXPECT_EQ(problems_of(registering("    - nccl_comm_deregister: {comm: w(0), buffer: n(0)}\n"
                                    "    - nccl_comm_deregister: {comm: w(0), buffer: n(0)}\n"
                                    "    - nccl_comm_register: {comm: w(0), buffer: n(1)}\n")),
            "11:7 error: buffer 'n(0)' is not registered with 'w' here: NCCL refuses this call | "
            "each nccl_comm_deregister takes back one nccl_comm_register\n"
            "12:7 error: buffer 'n(1)' is on device 1, and this is the communicator of device 0\n");
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\nprocesses: 2\n"
                        "communicators: {w: {members: all_devices}}\n"
                        "buffers: {n: {memory: nccl, size: 4KiB}}\nthreads:\n  main:\n"
                        "    - malloc: {buffer: n}\n"
                        "    - nccl_comm_register: {comm: w, buffer: n}\n"
                        "    - free: {buffer: n}\n"),
            "10:7 error: buffer 'n' is freed here while it is registered with 'w': its peers keep "
            "it mapped | call nccl_comm_deregister first\n");
}

TEST(CheckRegistrations, WarnOfWhatChangesNothing) {
  EXPECT_EQ(problems_of(registering("    - nccl_comm_register: {comm: w(0), buffer: d}\n")),
            "10:7 warning: NCCL cannot give memory of cudaMalloc to other ranks: registering 'd' "
            "changes nothing on one node | declare it with memory: nccl\n");
  EXPECT_EQ(problems_of(registering("", "NCCL_LOCAL_REGISTER: 0")),
            "9:47 warning: with NCCL_LOCAL_REGISTER=0 NCCL registers nothing here\n");
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\nprocesses: 2\n"
                        "communicators: {w: {members: all_devices}}\n"
                        "buffers: {n: {memory: nccl, size: 4KiB}}\nthreads:\n  main:\n"
                        "    process: 0\n    ops:\n"
                        "    - nccl_comm_register: {comm: w, buffer: n}\n"),
            "10:7 warning: rank 1 of 'w' registers no buffer, and others do | register the buffers "
            "of an operation on all ranks: the result is undefined else\n");
}

TEST(CheckRegistrations, MemoryOfNcclComesFromNoPool) {
  EXPECT_EQ(problems_of(registering("    - malloc_async: {buffer: n(0), stream: default(0)}\n")),
            "10:30 error: 'n(0)' is of memory: nccl, which no stream's pool gives | use malloc and "
            "free, which call ncclMemAlloc and ncclMemFree for it\n");
}

}  // namespace
}  // namespace foretrace
