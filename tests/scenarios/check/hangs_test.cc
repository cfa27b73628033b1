// What is no hang, or not for certain: simulate runs these to their end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/reading.h"

namespace foretrace {
namespace {

using reading_test::problems_of;
using testing::HasSubstr;

const std::string kHangHead =
    "schema_version: 1\nname: a\nsignals: {go: {}, more: {}}\nstreams: {s: {flags: "
    "non_blocking}, t: {flags: non_blocking}}\nevents: {e: {}}\nbuffers: {x: {memory: device, "
    "size: 4KiB}}\nthreads:\n";

/// Rank 0 and rank 1 of w run `ops`.
std::string ranks_of_w(const std::string& ops) {
  return "schema_version: 1\nname: a\nprocesses: 2\ncommunicators: {w: {members: "
         "all_devices}}\nbuffers: {x: {memory: device, size: 512MiB}}\nthreads:\n  main:\n" +
         ops;
}
std::string send_first(const std::string& size) {
  const std::string with =
      ": {comm: w, buffer: x, size: " + size + ", peer: 1 - process, type: float32}\n";
  return ranks_of_w("    - nccl_send" + with + "    - nccl_recv" + with +
                    "    - device_synchronize: {}\n");
}

TEST(CheckHangs, SmallSendsLieInNcclsBuffersUntilTheyAreReceived) {
  EXPECT_EQ(problems_of(send_first("4KiB")),
            "10:7 warning: host thread 'main' may wait here for ever | nccl_send of line 8 waits "
            "for its partner: rank 1 calls it in line 9, behind line 8 in its stream; it ends where "
            "NCCL's buffers hold what is sent\n");
  EXPECT_EQ(problems_of(send_first("256MiB")),
            "10:7 warning: host thread 'main' waits here for ever | nccl_send of line 8 never "
            "meets its partner: rank 1 calls it in line 9, behind line 8 in its stream\n");
}

TEST(CheckHangs, NcclDoesNotCompareTypesAndReductions) {
  const auto reduce = [](const std::string& second) {
    return ranks_of_w(
        "    - when: {condition: process == 0, ops: [nccl_all_reduce: {comm: w, "
        "buffer: x, type: float32, op: sum}]}\n    - when: {condition: process == 1, "
        "ops: [nccl_all_reduce: {comm: w, buffer: x, " +
        second + "}]}\n    - device_synchronize: {}\n");
  };
  const std::string wrong =
      "9:45 warning: rank 1 of 'w' calls nccl_all_reduce with another type or reduction than rank "
      "0 in line 8: the result is wrong | NCCL does not compare them: give all ranks one type and "
      "one op\n";
  EXPECT_EQ(problems_of(reduce("type: float32, op: max")), wrong);
  EXPECT_EQ(problems_of(reduce("type: int32, op: sum")), wrong);
  EXPECT_EQ(problems_of(reduce("type: float32, op: sum")), "");
  EXPECT_THAT(problems_of(reduce("size: 4KiB, type: float32")),
              HasSubstr("the ranks of 'w' call different collectives"));
}

TEST(CheckHangs, WhoTakesASignalFirstMayDecide) {
  EXPECT_EQ(
      problems_of(kHangHead + "  a: [{host_compute: {duration: 1ms}}, {host_wait: {signal: go}}]\n"
                              "  b: [{host_wait: {signal: go}}, {host_signal: {signal: more}}]\n"
                              "  c: [{host_signal: {signal: go}}, {host_wait: {signal: more}}, "
                              "{host_signal: {signal: go}}]\n"),
      "9:8 warning: host thread 'b' may wait here for ever | it ends where threads and "
      "streams come in another order\n"
      "10:37 warning: host thread 'c' may wait here for ever | it ends where threads and "
      "streams come in another order\n");
}

TEST(CheckHangs, AHostThreadMayTakeASignalBeforeAHostFunctionDoes) {
  EXPECT_EQ(problems_of(kHangHead +
                        "  main:\n    - spin: {stream: s, duration: 1ms}\n"
                        "    - host_signal: {signal: go}\n    - host_func: {stream: s, wait: go}\n"
                        "    - host_wait: {signal: go}\n    - host_signal: {signal: go}\n"),
            "12:7 warning: host thread 'main' may wait here for ever | it ends where threads and "
            "streams come in another order\n");
}

TEST(CheckHangs, NothingIsQueuedForAnEventThatIsComplete) {
  const auto waits = [](const std::string& record) {
    return kHangHead + "  main:\n" + record +
           "    - host_func: {stream: s, wait: go}\n    - repeat: {times: 2000, ops: "
           "[stream_wait_event: {event: e, stream: s}]}\n    - host_signal: {signal: go}\n";
  };
  EXPECT_EQ(problems_of(waits("    - event_record: {event: e, stream: t}\n"
                              "    - event_synchronize: {event: e}\n")),
            "");
  EXPECT_EQ(problems_of(waits("    - spin: {stream: t, duration: 1us}\n"
                              "    - event_record: {event: e, stream: t}\n")),
            "")
      << "it may be complete";
}

TEST(CheckHangs, AFullQueueHoldsNoCallsOfThePool) {
  EXPECT_EQ(problems_of(kHangHead +
                        "  main:\n    - host_func: {stream: s, wait: go}\n    - repeat: {times: "
                        "2000, ops: [malloc_async: {buffer: x, stream: s}, free_async: {buffer: x, "
                        "stream: s}]}\n    - host_signal: {signal: go}\n"),
            "");
}

TEST(CheckHangs, AWaitWithATimeEndsInVain) {
  EXPECT_EQ(problems_of(kHangHead +
                        "  main:\n    - host_func: {stream: s, wait: go}\n    - event_record: "
                        "{event: e, stream: s}\n    - event_wait_for: {event: e, timeout: 10us, "
                        "poll: 1us}\n    - host_signal: {signal: go}\n"),
            "11:7 warning: host thread 'main' waits in vain here, until its time is over | the "
            "host function of line 9 is never released\n");
}

TEST(CheckHangs, CallsOfAGraphCountWhereItIsLaunched) {
  const auto ranks = [](const std::string& first, const std::string& second) {
    return "schema_version: 1\nname: a\nprocesses: 2\nstreams: {s: {flags: "
           "non_blocking}}\ngraphs: {g: {}}\ncommunicators: {w: {members: "
           "all_devices}}\nbuffers: {x: {memory: device, size: 1MiB}}\nthreads:\n  r0: {process: "
           "0, ops: [" +
           first + "]}\n  r1: {process: 1, ops: [" + second + "]}\n";
  };
  const std::string in_graph =
      "{graph_capture: {graph: g, stream: s, ops: [nccl_all_reduce: {comm: w, stream: s, buffer: "
      "x, type: float32}]}}";
  const std::string launch = "{graph_launch: {graph: g, stream: s}}";
  const std::string reduce =
      "{nccl_reduce: {comm: w, stream: s, buffer: x, type: float32, root: 0}}";
  EXPECT_EQ(problems_of(ranks(in_graph + ", " + reduce + ", " + launch,
                              reduce + ", " + in_graph + ", " + launch)),
            "");
  EXPECT_THAT(problems_of(ranks(in_graph + ", " + reduce + ", " + launch,
                                in_graph + ", " + launch + ", " + reduce)),
              HasSubstr("the ranks of 'w' call different collectives"));
  EXPECT_THAT(problems_of(ranks(in_graph + ", " + launch + ", " + launch,
                                in_graph + ", " + launch)),
              HasSubstr("calls 2 collectives, and rank 1 calls 1"));
}

TEST(CheckHangs, WhoOnlySendsInARootedCollectiveMayEndAlone) {
  const auto broadcast = [](const std::string& size, int root) {
    return ranks_of_w("    - when: {condition: process == 0, ops: [nccl_broadcast: {comm: w, "
                      "buffer: x, type: float32, size: " +
                      size + ", root: " + std::to_string(root) +
                      "}]}\n    - device_synchronize: {}\n");
  };
  const std::string message = "rank 0 of 'w' calls 1 collective, and rank 1 calls 0";
  EXPECT_THAT(problems_of(broadcast("4KiB", 0)), HasSubstr("where NCCL's buffers do not hold"));
  for (const auto& sure : {broadcast("256MiB", 0), broadcast("4KiB", 1)}) {
    EXPECT_THAT(problems_of(sure), HasSubstr(message + ": this one waits for ever\n"));
  }
}

TEST(CheckHangs, NameTheRootsWhereNothingElseDiffers) {
  EXPECT_THAT(problems_of(ranks_of_w("    - nccl_broadcast: {comm: w, buffer: x, size: 8MiB, type: "
                                     "float32, root: process}\n")),
              HasSubstr("call 1 of rank 1 is nccl_broadcast of 8388608 B with root 1 (line 8), and "
                        "of rank 0 nccl_broadcast of 8388608 B with root 0 (line 8)"));
}

/// Each direction connects by itself in NCCL's source; nobody has measured it.
TEST(CheckHangs, AreNotSureWhereOneConnectionMayServeBothDirections) {
  const std::string ring =
      "schema_version: 1\nname: a\nprocesses: 2\nwarmup: 0\nstreams: {s: {flags: "
      "non_blocking}, t: {flags: non_blocking}}\ncommunicators: {w: {members: all_devices}, v: "
      "{members: all_devices}}\nbuffers: {x: {memory: device, size: 4KiB}, y: {memory: device, "
      "size: 4KiB}}\nthreads:\n"
      "  r0: {process: 0, ops: [{nccl_send: {comm: w, stream: s, buffer: x, type: float32, peer: "
      "1}}, {nccl_send: {comm: v, stream: t, buffer: x, type: float32, peer: 1}}, {nccl_recv: "
      "{comm: w, stream: s, buffer: y, type: float32, peer: 1}}, {nccl_recv: {comm: v, stream: t, "
      "buffer: y, type: float32, peer: 1}}]}\n"
      "  r1: {process: 1, ops: [{nccl_recv: {comm: w, stream: s, buffer: y, type: float32, peer: "
      "0}}, {nccl_recv: {comm: v, stream: t, buffer: y, type: float32, peer: 0}}, {nccl_send: "
      "{comm: v, stream: t, buffer: x, type: float32, peer: 0}}, {nccl_send: {comm: w, stream: s, "
      "buffer: x, type: float32, peer: 0}}]}\n";
  EXPECT_THAT(problems_of(ring), HasSubstr("may wait here for ever | it connects, and the first "
                                           "transfer from rank 1 to rank 0 needs rank 1; it ends "
                                           "where ranks that are connected one way"));
}

}  // namespace
}  // namespace foretrace
