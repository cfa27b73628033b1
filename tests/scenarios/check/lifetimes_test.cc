// Buffers that the program allocates and frees, in the order of one host thread.
#include <gtest/gtest.h>

#include "tests/scenarios/reading.h"

namespace foretrace {
namespace {

using reading_test::problems_of;
using reading_test::scenario_with;

const std::string kUse = "memset_async: {stream: s, dst: x}";
const std::string kMalloc = "malloc: {buffer: x}";
const std::string kFree = "free: {buffer: x}";

std::string lines(const std::vector<std::string>& ops) {
  std::string text;
  for (const std::string& op : ops) text += op + "\n";
  return scenario_with(text);
}
std::string hint_of_use() {
  return " | move its allocation before this, or leave that out: what no operation allocates is "
         "there before the run\n";
}

TEST(CheckLifetimes, RefusesAUseBeforeTheAllocation) {
  EXPECT_EQ(problems_of(lines({kUse, kMalloc, kUse})),
            "18:7 error: buffer 'x' is used here before anything allocates it" + hint_of_use());
}

TEST(CheckLifetimes, RefusesAUseAfterTheFree) {
  EXPECT_EQ(problems_of(lines({kMalloc, kUse, kFree, kUse})),
            "21:7 error: buffer 'x' is used here, and line 20 freed it | free it behind its last "
            "use\n");
  EXPECT_EQ(problems_of(lines({"host_alloc: {buffer: host}", "host_free: {buffer: host}",
                               "memcpy: {src: host, dst: y}"})),
            "20:7 error: buffer 'host' is used here, and line 19 freed it | free it behind its "
            "last use\n");
}

TEST(CheckLifetimes, NamesTheColumnOfAFreeInTheSameLine) {
  EXPECT_EQ(
      problems_of(
          lines({"repeat: {times: 1, ops: [" + kMalloc + ", " + kFree + ", " + kUse + "]}"})),
      "18:72 error: buffer 'x' is used here, and line 18, column 53 freed it | free it behind "
      "its last use\n");
}

TEST(CheckLifetimes, RefusesASecondFree) {
  const std::string again =
      " error: buffer 'x' is freed here again: line 19 did it | free it once for each time that it "
      "is allocated\n";
  EXPECT_EQ(problems_of(lines({kMalloc, kFree, kFree})), "20:7" + again);
  EXPECT_EQ(problems_of(lines({"malloc_async: {buffer: x, stream: s}",
                               "free_async: {buffer: x, stream: s}", kFree})),
            "20:7" + again);
}

TEST(CheckLifetimes, RefusesASecondAllocationWithoutAFree) {
  EXPECT_EQ(problems_of(lines({kMalloc, kMalloc})),
            "19:7 error: buffer 'x' is allocated here again: line 18 did it, and nothing freed it "
            "since | free it first, or declare a buffer for each\n");
}

TEST(CheckLifetimes, RefusesAFreeOfWhatIsThereBeforeTheRun) {
  EXPECT_EQ(problems_of(lines({kUse, kFree})),
            "19:7 error: buffer 'x' is freed here, and no operation allocates it: the next pass "
            "would not have it | malloc it first: what an operation allocates is not there before "
            "the run\n");
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\nwarmup: 0\n"
                        "buffers: {x: {memory: device, size: 4KiB}}\n"
                        "threads: {main: [free: {buffer: x}]}\n"),
            "")
      << "there is no next pass";
}

TEST(CheckLifetimes, FollowsLoopsAndTheirIndices) {
  EXPECT_EQ(problems_of(
                lines({"repeat: {times: 5, ops: [" + kMalloc + ", " + kUse + ", " + kFree + "]}"})),
            "");
  EXPECT_EQ(problems_of(lines({kMalloc, "repeat: {times: 2, ops: [" + kFree + "]}"})),
            "19:32 error: buffer 'x' is freed here again: an earlier iteration did it | free it "
            "once for each time that it is allocated\n");
  const std::string family =
      "schema_version: 1\nname: a\nbuffers: {x: {memory: device, size: 4KiB, count: 2}}\n"
      "threads:\n  main:\n    - malloc: {buffer: x(0)}\n"
      "    - repeat: {index: i, times: 2, ops: [memset: {dst: x(i)}]}\n"
      "    - repeat: {index: i, times: 2, ops: [malloc: {buffer: x(1 - i)}]}\n";
  EXPECT_EQ(problems_of(family),
            "7:42 error: buffer 'x(1)' is used here before anything allocates it" + hint_of_use() +
                "8:42 error: buffer 'x(0)' is allocated here again: line 6 did it, and nothing "
                "freed it since | free it first, or declare a buffer for each\n");
}

TEST(CheckLifetimes, CallsItARaceWhatAnotherStreamMayStillDoBefore) {
  const std::string on_s = "_async: {buffer: x, stream: s}";
  EXPECT_EQ(
      problems_of(lines({"malloc" + on_s, "free" + on_s, "memset_async: {dst: x}"})).substr(0, 65),
      "20:7 warning: buffer 'x' is written here on stream 'default(0)', ");
  EXPECT_EQ(problems_of(lines({"malloc" + on_s, "free" + on_s, kUse})),
            "20:7 error: buffer 'x' is used here, and line 19 freed it | free it behind its last "
            "use\n");
}

TEST(CheckLifetimes, SaysNothingWhereSeveralThreadsDecide) {
  const std::string head =
      "schema_version: 1\nname: a\nstreams: {s: {}}\n"
      "buffers: {x: {memory: device, size: 4KiB}}\nthreads:\n";
  EXPECT_EQ(problems_of(head + "  main: [malloc: {buffer: x}, memset: {dst: x}, memset: {dst: x}]\n"
                               "  other: [host_compute: {duration: 1ms}, free: {buffer: x}]\n"),
            "");
}

TEST(CheckLifetimes, RefusesAUseInAProcessThatNeverAllocates) {
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\nprocesses: 2\n"
                        "buffers: {x: {memory: device, size: 4KiB}}\nthreads:\n  main:\n"
                        "    - when: {condition: process == 0, ops: [malloc: {buffer: x}]}\n"
                        "    - memset: {dst: x}\n"),
            "8:7 error: buffer 'x' is used here before anything allocates it" + hint_of_use());
}

TEST(CheckLifetimes, LeavesWhatOnlyTheRootTouchesToTheOtherRanks) {
  EXPECT_EQ(
      problems_of("schema_version: 1\nname: a\nprocesses: 2\n"
                  "communicators: {w: {members: all_devices}}\n"
                  "buffers: {x: {memory: device, size: 4KiB}, y: {memory: device, size: 4KiB}}\n"
                  "threads:\n  main:\n"
                  "    - when: {condition: process == 0, ops: [malloc: {buffer: y}]}\n"
                  "    - nccl_reduce: {comm: w, send_buffer: x, recv_buffer: y, type: float32, "
                  "root: 0}\n"),
      "");
}

TEST(CheckLifetimes, SaysALineOnceHoweverManyProcessesRunIt) {
  EXPECT_EQ(
      problems_of("schema_version: 1\nname: a\nprocesses: 1000\n"
                  "buffers: {x: {memory: device, size: 4KiB}}\nthreads:\n"
                  "  main: [malloc: {buffer: x}, free: {buffer: x}, free: {buffer: x}]\n"),
      "6:50 error: buffer 'x' is freed here again: line 6, column 31 did it | free it once for "
      "each time that it is allocated\n");
}

TEST(CheckPinned, RefusesToRegisterABufferTwiceInAPass) {
  const std::string pin = "host_register: {buffer: page}";
  const std::string hint =
      ", and that lasts until host_unregister or the end of the pass | register it once, before "
      "the loop, or host_unregister it in between\n";
  EXPECT_EQ(problems_of(lines({pin})), "");
  EXPECT_EQ(problems_of(lines({pin, pin})),
            "19:7 error: buffer 'page' is registered here again: line 18 did it" + hint);
  EXPECT_EQ(
      problems_of(lines({"repeat: {times: 2, ops: [" + pin + "]}"})),
      "18:32 error: buffer 'page' is registered here again: an earlier iteration did it" + hint);
  EXPECT_EQ(problems_of(lines({"repeat: {times: 1, ops: [" + pin + "]}"})), "");
}

TEST(CheckPinned, RefusesWhatTwoThreadsOfAProcessRegisterButNotTwoProcesses) {
  const std::string head =
      "schema_version: 1\nname: a\nprocesses: 2\n"
      "buffers: {h: {memory: pageable, size: 4KiB, count: 2}}\nthreads:\n"
      "  main: [repeat: {index: i, times: 2, ops: [host_register: {buffer: h(i)}]}]\n";
  EXPECT_EQ(problems_of(head), "");
  EXPECT_EQ(problems_of(head + "  other: [host_register: {buffer: h(1)}]\n"),
            "7:11 error: buffer 'h(1)' is registered here again: line 6 did it, and that lasts "
            "until host_unregister or the end of the pass | register it once, before the loop, or "
            "host_unregister it in between\n");
  EXPECT_EQ(problems_of(head + "  other: [host_unregister: {buffer: h(1)}, host_register: {buffer: "
                               "h(1)}]\n"),
            "")
      << "of several threads the order is not known";
}

TEST(CheckPinned, FollowsUnregisteringInTheOrderOfAThread) {
  const std::string pin = "host_register: {buffer: page}";
  const std::string unpin = "host_unregister: {buffer: page}";
  const std::string hint =
      " | host_register it before, once for each time that it is unregistered\n";
  EXPECT_EQ(problems_of(lines({pin, unpin, pin, unpin})), "");
  EXPECT_EQ(problems_of(lines({"repeat: {times: 3, ops: [" + pin + ", " + unpin + "]}"})), "");
  EXPECT_EQ(problems_of(lines({unpin})),
            "18:7 error: buffer 'page' is unregistered here, and it is not registered" + hint);
  EXPECT_EQ(problems_of(lines({pin, unpin, unpin})),
            "20:7 error: buffer 'page' is unregistered here again: line 19 did it" + hint);
  EXPECT_EQ(
      problems_of(lines({pin, "repeat: {times: 2, ops: [" + unpin + "]}"})),
      "19:32 error: buffer 'page' is unregistered here again: an earlier iteration did it" + hint);
}

TEST(CheckPinned, TellsWhatIsWrongInAnyOrderOfTwoThreads) {
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\nbuffers: {h: {memory: pageable, size: 4KiB}}\n"
                        "threads:\n  main: [host_register: {buffer: h}]\n"
                        "  other: [repeat: {times: 2, ops: [host_unregister: {buffer: h}]}]\n"),
            "6:36 error: buffer 'h' is unregistered here, and it is not registered | "
            "host_register it before, once for each time that it is unregistered\n");
}

TEST(CheckLifetimes, GivesUpOnLoopsThatNobodyCanFollow) {
  EXPECT_EQ(problems_of(lines({"repeat: {index: i, times: 1000000000000, ops: [" + kMalloc + ", " +
                               kFree + "]}"})),
            "");
}

}  // namespace
}  // namespace foretrace
