// Warnings of data races and of programs that hang: what is one, and above all what is none.
#include <gtest/gtest.h>

#include "tests/scenarios/reading.h"

namespace foretrace {
namespace {

using reading_test::problems_of;

/// Line 8 is the first operation.
std::string with(const std::string& ops) {
  return "schema_version: 1\nname: a\nstreams: {a: {flags: non_blocking}, b: {flags: "
         "non_blocking}}\nevents: {e: {}}\nbuffers: {x: {memory: device, size: 4KiB}, pin: "
         "{memory: "
         "pinned, size: 4KiB}, page: {memory: pageable, size: 4KiB}}\nthreads:\n  main:\n" +
         ops;
}
const std::string kCopy = "    - memcpy_async: {stream: a, src: pin, dst: x}\n";
const std::string kRead = "    - elementwise: {stream: b, src: x, dst: x}\n";

TEST(CheckRaces, WarnsOfTwoStreamsThatNothingOrders) {
  EXPECT_EQ(problems_of(with(kCopy + "    - reduction: {stream: b, src: x, dst: x, size: 4B}\n")),
            "9:7 warning: buffer 'x' is read here on stream 'b', and written in line 8 on stream "
            "'a': nothing orders the two | record an event after line 8 and wait for it before "
            "line 9\n");
}

TEST(CheckRaces, NamesTheColumnsOfTwoOperationsInOneLine) {
  EXPECT_EQ(problems_of(with("    [memcpy_async: {stream: a, src: pin, dst: x}, "
                             "memset_async: {stream: b, dst: x}]\n")),
            "8:51 warning: buffer 'x' is written here on stream 'b', and written in line 8, column "
            "6 on stream 'a': nothing orders the two | record an event after line 8, column 6 and "
            "wait for it before line 8, column 51\n");
}

TEST(CheckRaces, AcceptsAnEventOrASynchronizationBetweenThem) {
  EXPECT_EQ(problems_of(with(kCopy + "    - event_record: {stream: a, event: e}\n" +
                             "    - stream_wait_event: {stream: b, event: e}\n" + kRead)),
            "");
  EXPECT_EQ(problems_of(with(kCopy + "    - stream_synchronize: {stream: a}\n" + kRead)), "");
}

TEST(CheckRaces, AcceptsTwoReaders) {
  EXPECT_EQ(problems_of(with("    - memcpy_async: {stream: a, src: x, dst: pin}\n"
                             "    - memcpy_async: {stream: b, src: x, dst: page}\n")),
            "");
}

TEST(CheckRaces, ComparesTheBytesOfCopies) {
  const auto copies = [](const std::string& offset) {
    return with(
        "    - memcpy_async: {stream: a, src: pin, dst: x, size: 1KiB}\n"
        "    - memcpy_async: {stream: b, src: pin, dst: x, size: 1KiB, dst_offset: " +
        offset + "}\n");
  };
  EXPECT_EQ(problems_of(copies("1KiB")), "");
  EXPECT_NE(problems_of(copies("1000B")), "");
}

TEST(CheckRaces, WarnsWhenTheHostRefillsABufferThatIsBeingCopied) {
  EXPECT_EQ(problems_of(with("    - repeat:\n        times: 2\n        ops:\n"
                             "          - host_fill: {dst: pin}\n"
                             "          - memcpy_async: {stream: a, src: pin, dst: x}\n")),
            "12:13 warning: buffer 'pin' is read here on stream 'a', and written in line 11 on "
            "host thread 'main': nothing orders the two | record an event after line 12 and wait "
            "for it before line 11\n");
}

TEST(CheckRaces, KnowsThatPageableMemoryIsReadWhenTheCallReturns) {
  EXPECT_EQ(problems_of(with("    - memcpy_async: {stream: a, src: page, dst: x}\n"
                             "    - host_fill: {dst: page}\n")),
            "");
}

TEST(CheckRaces, AcceptsASemaphoreThatTwoThreadsGive) {
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\nsignals: {ready: {}, free: {}}\n"
                        "streams: {a: {flags: non_blocking}}\n"
                        "buffers: {x: {memory: device, size: 4KiB}, pin: {memory: pinned, size: "
                        "4KiB, count: 2}}\nthreads:\n"
                        "  one: [{host_fill: {dst: pin(0)}}, {host_signal: {signal: ready}}]\n"
                        "  two: [{host_fill: {dst: pin(1)}}, {host_signal: {signal: ready}}]\n"
                        "  main:\n    - host_wait: {signal: ready}\n    - host_wait: {signal: "
                        "ready}\n    - memcpy_async: {stream: a, src: pin(0), dst: x}\n"
                        "    - memcpy_async: {stream: a, src: pin(1), dst: x}\n"),
            "");
}

TEST(CheckRaces, AsksOnlyTheRootForWhatABroadcastReads) {
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\nprocesses: 2\n"
                        "communicators: {w: {members: all_devices}}\n"
                        "streams: {a: {flags: non_blocking}, b: {flags: non_blocking}}\n"
                        "buffers: {x: {memory: device, size: 4KiB, count: 2}}\nthreads:\n  main:\n"
                        "    process: 1\n    ops:\n      - memset_async: {stream: b, dst: x(0)}\n"
                        "      - nccl_broadcast: {comm: w, stream: a, send_buffer: x(0), "
                        "recv_buffer: x(1), type: float32, root: 0}\n"
                        "  root:\n    process: 0\n    ops:\n"
                        "      - nccl_broadcast: {comm: w, stream: a, send_buffer: x(0), "
                        "recv_buffer: x(1), type: float32, root: 0}\n"),
            "");
}

/// Line 8 is the first operation.
std::string with_pool(const std::string& ops) {
  return "schema_version: 1\nname: a\nstreams: {a: {flags: non_blocking}, b: {flags: "
         "non_blocking}}\nevents: {e: {}}\nbuffers: {x: {memory: device, size: "
         "4KiB}}\nthreads:\n  main:\n" +
         ops;
}
std::string pooled(const std::string& stream) {
  return "    - malloc_async: {buffer: x, stream: " + stream +
         "}\n    - memset_async: {dst: x, stream: " + stream +
         "}\n    - free_async: {buffer: x, stream: " + stream + "}\n";
}

TEST(CheckRaces, TheNextAllocationIsOtherMemory) {
  EXPECT_EQ(problems_of(with_pool(pooled("a") + pooled("b"))), "");
  EXPECT_EQ(
      problems_of(with_pool("    - repeat:\n        index: i\n        times: 4\n        ops:\n"
                            "        - malloc_async: {buffer: x, stream: a}\n"
                            "        - memset_async: {dst: x, stream: a}\n"
                            "        - free_async: {buffer: x, stream: a}\n" +
                            pooled("b"))),
      "");
}

TEST(CheckRaces, UsesMustComeBehindMallocAsyncAndBeforeFreeAsync) {
  const std::string make = "    - malloc_async: {buffer: x, stream: a}\n";
  const std::string use = "    - memset_async: {dst: x, stream: b}\n";
  const std::string free = "    - free_async: {buffer: x, stream: a}\n";
  const std::string record = "    - event_record: {event: e, stream: ";
  const std::string wait = "    - stream_wait_event: {event: e, stream: ";
  EXPECT_EQ(problems_of(with_pool(make + use + "    - device_synchronize: {}\n" + free)),
            "9:7 warning: buffer 'x' is written here on stream 'b', and allocated in line 8 on "
            "stream 'a': nothing orders the two | record an event after line 8 and wait for it "
            "before line 9\n");
  EXPECT_EQ(problems_of(with_pool(make + record + "a}\n" + wait + "b}\n" + use + free)),
            "12:7 warning: buffer 'x' is freed here on stream 'a', and written in line 11 on "
            "stream 'b': nothing orders the two | record an event after line 11 and wait for it "
            "before line 12\n");
  EXPECT_EQ(problems_of(with_pool(make + record + "a}\n" + wait + "b}\n" + use + record + "b}\n" +
                                  wait + "a}\n" + free)),
            "");
}

TEST(CheckRaces, SaysThoseOfTwoLinesOnce) {
  std::string text =
      "schema_version: 1\nname: a\nprocesses: 4\nstreams: {a: {flags: non_blocking}, b: {flags: "
      "non_blocking}}\nbuffers: {x: {memory: device, size: 4KiB, count: 4}}\nthreads:\n  main:\n";
  for (const char* process : {"0", "1", "2"}) {  // each process has operations of its own
    text += std::string{"    - when: {condition: process == "} + process +
            ", ops: [host_compute: {duration: 1us}]}\n";
  }
  text +=
      "    - memset_async: {dst: x(process), stream: a}\n"
      "    - memset_async: {dst: x(process), stream: b}\n";
  EXPECT_EQ(problems_of(text),
            "12:7 warning: buffer 'x(3)' is written here on stream 'b', and written in line 11 on "
            "stream 'a': nothing orders the two, nor 3 more such pairs | record an event after "
            "line 11 and wait for it before line 12\n");
}

TEST(CheckHangs, SaysWhichThreadsWaitForEachOther) {
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\nsignals: {ping: {}, pong: {}}\nthreads:\n"
                        "  one: [{host_wait: {signal: pong}}, {host_signal: {signal: ping}}]\n"
                        "  two: [{host_wait: {signal: ping}}, {host_signal: {signal: pong}}]\n"),
            "5:10 warning: host thread 'one' waits here for ever\n"
            "6:10 warning: host thread 'two' waits here for ever\n");
}

TEST(CheckHangs, NamesTheHostFunctionThatNobodyReleases) {
  const std::string head =
      "schema_version: 1\nname: a\nsignals: {go: {}}\nstreams: {s: {}}\nthreads:\n  main:\n"
      "    - host_func: {stream: s, wait: go}\n";
  EXPECT_EQ(problems_of(head + "    - device_synchronize: {}\n    - host_signal: {signal: go}\n"),
            "8:7 warning: host thread 'main' waits here for ever | the host function of line 7 is "
            "never released\n");
  EXPECT_EQ(problems_of(head + "    - host_signal: {signal: go}\n    - device_synchronize: {}\n"),
            "");
}

TEST(CheckHangs, SeesTheStreamThatIsLeftWaiting) {
  EXPECT_EQ(problems_of("schema_version: 1\nname: a\nsignals: {go: {}}\nstreams: {s: {}}\n"
                        "threads:\n  main:\n    - host_func: {stream: s, wait: go}\n"),
            "7:7 warning: the stream waits here for ever | the host function of line 7 is never "
            "released\n");
}

TEST(CheckHangs, KnowsThatTheHostStopsBehindAFullLaunchQueue) {
  const auto launches = [](const std::string& count) {
    return "schema_version: 1\nname: a\nsignals: {go: {}}\nstreams: {s: {}}\nthreads:\n  main:\n"
           "    - host_func: {stream: s, wait: go}\n    - repeat: {times: " +
           count +
           ", ops: [{spin: {stream: s, duration: 1us}}]}\n    - host_signal: {signal: go}\n";
  };
  EXPECT_EQ(problems_of(launches("500")), "");
  EXPECT_NE(problems_of(launches("2000")), "");
}

}  // namespace
}  // namespace foretrace
