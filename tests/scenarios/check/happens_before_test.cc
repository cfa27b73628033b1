#include "scenarios/check/happens_before.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/scenarios/reading.h"

namespace foretrace {
namespace {

/// The order of one scenario, asked by the ids of its operations.
class Order {
 public:
  explicit Order(const std::string& text, OrderMode mode = OrderMode::Guaranteed)
      : program_{reading_test::read("schema_version: 1\nname: a\n" + text)},
        order_{happens_before(program_, {.mode = mode})} {}

  /// Whether `first` has ended when `then` begins, on their streams or else on their hosts.
  bool has(const std::string& first, const std::string& then, std::uint64_t instance = 0) const {
    return order_.is_ordered(node(first, 0), node(then, instance));
  }
  bool neither(const std::string& a, const std::string& b) const {
    return !has(a, b) && !has(b, a);
  }
  const HappensBefore& result() const { return order_; }

 private:
  std::uint32_t node(const std::string& id, std::uint64_t instance) const {
    std::uint32_t found = 0;
    for (std::uint32_t n = 0; n < order_.nodes.size(); ++n) {
      const OrderNode& at = order_.nodes[n];
      const ExecutedOp& does = at.work_count > 0 ? order_.work[at.first_work] : at.call;
      if (does.op->label == id && does.instance == instance) found = n;  // its entry comes last
    }
    return found;
  }
  Program program_;
  HappensBefore order_;
};

const std::string kStreams =
    "streams: {a: {flags: non_blocking}, b: {flags: non_blocking}, c: {flags: blocking}}\n"
    "events: {e: {}}\nsignals: {go: {}, done: {}}\ngraphs: {g: {}}\n"
    "buffers: {x: {memory: device, size: 1MiB}, pin: {memory: pinned, size: 1MiB}, "
    "page: {memory: pageable, size: 1MiB}}\n";

std::string one_thread(const std::string& ops) { return kStreams + "threads:\n  main:\n" + ops; }
std::string spin(const std::string& id, const std::string& stream) {
  return "    - spin: {id: " + id + ", stream: " + stream + ", duration: 1us}\n";
}

TEST(HappensBefore, KeepsTheOrderOfOneStreamAndNoneBetweenTwo) {
  const Order order{one_thread(spin("k", "a") + spin("l", "a") + spin("m", "b"))};
  EXPECT_TRUE(order.has("k", "l"));
  EXPECT_FALSE(order.has("l", "k"));
  EXPECT_TRUE(order.neither("k", "m"));
  EXPECT_TRUE(order.result().is_finished);
  EXPECT_TRUE(order.result().is_complete);
}

TEST(HappensBefore, FollowsAnEventFromItsRecordToTheWait) {
  const Order order{one_thread(
      spin("k", "a") + "    - event_record: {stream: a, event: e}\n" + spin("later", "a") +
      "    - stream_wait_event: {stream: b, event: e}\n" + spin("m", "b"))};
  EXPECT_TRUE(order.has("k", "m"));
  EXPECT_TRUE(order.neither("later", "m"));
}

TEST(HappensBefore, MeansTheRecordThatWasTheLatestWhenTheWaitWasCalled) {
  const Order order{one_thread("    - stream_wait_event: {stream: b, event: e}\n" + spin("m", "b") +
                               spin("k", "a") + "    - event_record: {stream: a, event: e}\n")};
  EXPECT_TRUE(order.neither("k", "m"));
  EXPECT_TRUE(order.result().is_finished);
}

TEST(HappensBefore, PutsTheLegacyStreamBetweenBlockingStreamsOnly) {
  const Order order{one_thread(spin("before", "c") + spin("beside", "a") + spin("k", "default") +
                               spin("after", "c") + spin("own", "per_thread"))};
  EXPECT_TRUE(order.has("before", "k"));
  EXPECT_TRUE(order.has("k", "after"));
  EXPECT_TRUE(order.has("k", "own"));
  EXPECT_TRUE(order.neither("beside", "k"));
}

std::string on(const std::string& operation, const std::string& stream) {
  return "    - " + operation + ": {stream: " + stream + ", event: e}\n";
}

TEST(HappensBefore, DoesNotTakeAWaitForWorkThatTheLegacyStreamKeepsApart) {
  // Seen on H200: nothing is queued for an event that is complete already.
  const std::string recorded = on("event_record", "a");
  const std::string sync = "    - stream_synchronize: {stream: c}\n";
  const Order blocking{one_thread(recorded + spin("k", "default") + on("stream_wait_event", "c") +
                                  sync + spin("l", "a"))};
  EXPECT_TRUE(blocking.neither("k", "l")) << "c may be empty: the host does not wait for k";
  const Order legacy{one_thread(recorded + spin("k", "c") + on("stream_wait_event", "default") +
                                spin("l", "per_thread"))};
  EXPECT_TRUE(legacy.neither("k", "l")) << "nothing of the legacy stream is between them";
}

TEST(HappensBefore, OrdersTheWorkAfterAWaitWithTheLegacyStreamAllTheSame) {
  const Order order{one_thread(
      spin("k", "a") + on("event_record", "a") + spin("blocking", "c") +
      on("stream_wait_event", "c") + spin("legacy", "default") + on("stream_wait_event", "c") +
      "    - stream_synchronize: {stream: c}\n" + spin("after_sync", "b") + spin("after", "c"))};
  EXPECT_TRUE(order.has("blocking", "legacy")) << "the wait does not hide what is before it";
  EXPECT_TRUE(order.neither("k", "legacy"));
  EXPECT_TRUE(order.has("k", "after_sync")) << "the wait holds its stream";
  EXPECT_TRUE(order.has("legacy", "after"));
}

TEST(HappensBefore, LetsARecordInTheLegacyStreamWaitButKeepNothingApart) {
  const Order order{one_thread(spin("k", "c") + on("event_record", "default") +
                               spin("l", "per_thread") + on("stream_wait_event", "a") +
                               spin("m", "a"))};
  EXPECT_TRUE(order.has("k", "m"));
  EXPECT_TRUE(order.neither("k", "l"));
  const Order idle{one_thread(spin("k", "default") + on("event_record", "c") +
                              "    - event_synchronize: {event: e}\n" + spin("l", "a"))};
  EXPECT_TRUE(idle.neither("k", "l")) << "c is empty";
}

TEST(HappensBefore, DoesNotTakeMemoryOfAStreamForWorkOfIt) {
  const std::string text =
      "buffers: {p: {memory: device, size: 1MiB}}\n"
      "streams: {a: {flags: non_blocking}, c: {flags: blocking}}\nthreads:\n  main:\n" +
      spin("k", "default") + "    - malloc_async: {stream: c, buffer: p}\n" +
      "    - free_async: {stream: c, buffer: p}\n    - stream_synchronize: {stream: c}\n" +
      spin("l", "a") + spin("m", "c");
  EXPECT_TRUE(Order{text}.neither("k", "l"));
  EXPECT_TRUE(Order{text}.has("k", "m"));
  EXPECT_TRUE((Order{text, OrderMode::Likely}.has("k", "l"))) << "no race is reported for it";
}

TEST(HappensBefore, KnowsWhatAHostThreadWaitedFor) {
  const Order order{one_thread(spin("k", "a") + "    - stream_synchronize: {stream: a}\n" +
                               spin("l", "b") + "    - device_synchronize: {}\n" + spin("m", "c"))};
  EXPECT_TRUE(order.has("k", "l"));
  EXPECT_TRUE(order.has("l", "m"));
}

TEST(HappensBefore, HoldsTheHostInCopiesAsCudaDocuments) {
  const auto after_copy = [](const std::string& copy, OrderMode mode = OrderMode::Guaranteed) {
    return Order{one_thread(spin("k", "default") + "    - memcpy: {id: copy, " + copy + "}\n" +
                            spin("l", "a")),
                 mode}
        .has("k", "l");
  };
  EXPECT_TRUE(after_copy("src: pin, dst: x"));
  EXPECT_TRUE(after_copy("src: x, dst: page"));
  EXPECT_FALSE(after_copy("src: page, dst: x")) << "may return once the data has left the buffer";
  EXPECT_TRUE(after_copy("src: page, dst: x, size: 4KiB", OrderMode::Likely)) << "seen on H200";
  EXPECT_FALSE(after_copy("src: x, dst: x")) << "within a device the host does not wait";
}

std::string two_threads(const std::string& first, const std::string& second) {
  return kStreams + "threads:\n  one:\n" + first + "  two:\n" + second;
}

TEST(HappensBefore, OrdersHostThreadsBySignalsAndBarriersOnly) {
  const std::string sync = "    - stream_synchronize: {stream: a}\n";
  const Order unknown{two_threads(spin("k", "a") + sync, spin("l", "b"))};
  EXPECT_TRUE(unknown.neither("k", "l"));
  const Order signal{two_threads(spin("k", "a") + sync + "    - host_signal: {signal: go}\n",
                                 "    - host_wait: {signal: go}\n" + spin("l", "b"))};
  EXPECT_TRUE(signal.has("k", "l"));
  const Order barrier{two_threads(spin("k", "a") + sync + "    - host_barrier: {}\n",
                                  "    - host_barrier: {}\n" + spin("l", "b"))};
  EXPECT_TRUE(barrier.has("k", "l"));
}

TEST(HappensBefore, LeavesTheOrderOfOneStreamOpenBetweenThreadsThatDoNotMeet) {
  const std::string text = two_threads(spin("k", "a"), spin("l", "a"));
  EXPECT_TRUE(Order{text}.neither("k", "l"));
  EXPECT_FALSE((Order{text, OrderMode::Likely}.neither("k", "l")));
}

TEST(HappensBefore, DoesNotGuessWhoGaveASignalThatTwoGive) {
  const std::string gives =
      "    - stream_synchronize: {stream: a}\n    - host_signal: {signal: go}\n";
  const std::string text = kStreams + "threads:\n  one:\n" + spin("k", "a") + gives +
                           "  two: [{host_signal: {signal: go}}]\n  three:\n" +
                           "    - host_wait: {signal: go}\n" + spin("l", "b");
  EXPECT_TRUE(Order{text}.neither("k", "l"));
}

TEST(HappensBefore, RunsAHostFunctionInItsStreamWithItsSignals) {
  const Order order{one_thread(
      spin("k", "a") + "    - host_func: {id: f, stream: a, wait: go, signal: done}\n" +
      spin("l", "a") + "    - host_signal: {signal: go}\n    - host_wait: {signal: done}\n" +
      spin("m", "b"))};
  EXPECT_TRUE(order.has("k", "f"));
  EXPECT_TRUE(order.has("f", "l"));
  EXPECT_TRUE(order.has("k", "m"));
  EXPECT_TRUE(order.neither("l", "m"));
  EXPECT_TRUE(order.result().is_finished);
}

TEST(HappensBefore, TakesAGraphLaunchAsOneEntry) {
  const Order order{
      one_thread("    - graph_capture: {graph: g, stream: a, ops: [{spin: {id: in, "
                 "stream: a, duration: 1us}}]}\n" +
                 spin("k", "a") + "    - graph_launch: {graph: g, stream: a}\n" + spin("l", "a"))};
  EXPECT_TRUE(order.has("k", "in"));
  EXPECT_TRUE(order.has("in", "l"));
}

/// Two processes with a communicator w; both run `ops`, and process 1 `first` before them.
std::string two_ranks_with_first(const std::string& first, const std::string& ops) {
  return "processes: 2\ncommunicators: {w: {members: all_devices}}\n"
         "streams: {a: {flags: non_blocking}}\nbuffers: {x: {memory: device, size: 4KiB}}\n"
         "threads:\n  zero:\n    process: 0\n    ops:\n" +
         ops + "  one:\n    process: 1\n    ops:\n" + first + ops;
}
const std::string kReduce =
    "    - nccl_all_reduce: {comm: w, stream: a, buffer: x, type: float32}\n";

TEST(HappensBefore, EndsACollectiveOnlyAfterAllRanksBegan) {
  const Order order{two_ranks_with_first(spin("k", "a"), kReduce + spin("l", "a"))};
  // "l" is in both processes under two operations with one id; the last is process 1's.
  EXPECT_TRUE(order.has("k", "l"));
  const Order from_rank_1{two_ranks_with_first(spin("k", "a"), kReduce) +
                          "  again:\n    process: 0\n    ops:\n" +
                          "    - device_synchronize: {}\n" + spin("m", "a")};
  EXPECT_TRUE(from_rank_1.neither("k", "m")) << "another thread: who is first is not known";
}

TEST(HappensBefore, LetsTheRootOfABroadcastBeOverBeforeTheOthersBegin) {
  const auto broadcast = [](const std::string& root) {
    return "    - nccl_broadcast: {comm: w, stream: a, buffer: x, type: float32, root: " + root +
           "}\n";
  };
  const auto order = [&](const std::string& root) {
    const std::string text =
        "processes: 2\ncommunicators: {w: {members: all_devices}}\n"
        "streams: {a: {flags: non_blocking}}\nbuffers: {x: {memory: device, size: 4KiB}}\n"
        "threads:\n  zero:\n    process: 0\n    ops:\n";
    return Order{text + spin("k", "a") + broadcast(root) + "  one:\n    process: 1\n    ops:\n" +
                 broadcast(root) + spin("l", "a")};
  };
  EXPECT_TRUE(order("0").has("k", "l")) << "rank 1 receives what rank 0 sends after k";
  EXPECT_FALSE(order("1").has("k", "l")) << "rank 1 only sends";
}

TEST(HappensBefore, SeesThatACollectiveWithoutItsPartnerNeverEnds) {
  const Order order{
      two_ranks_with_first(kReduce, kReduce + "    - stream_synchronize: {stream: a}\n")};
  EXPECT_FALSE(order.result().is_finished);
  EXPECT_TRUE(order.result().is_complete);
}

TEST(HappensBefore, SeesThatNobodySignals) {
  const Order order{one_thread("    - host_wait: {signal: go}\n    - host_signal: {signal: go}\n")};
  EXPECT_FALSE(order.result().is_finished);
}

/// Threads that each call one kernel on one stream, each after `first`.
std::string crowd(std::size_t threads, const std::string& first) {
  std::string text = kStreams + "threads:\n";
  for (std::size_t i = 0; i < threads; ++i) {
    text += "  t" + std::to_string(i) + ":\n" + first + spin("k" + std::to_string(i), "a");
  }
  return text;
}

// A stream's entries follow each other: each has one edge, not one to each that came before.
TEST(HappensBefore, GivesACrowdOfThreadsOnOneStreamAsManyEdgesAsKernels) {
  const Order order{crowd(300, ""), OrderMode::Likely};
  EXPECT_TRUE(order.has("k0", "k299"));
  EXPECT_LE(order.result().edges.size(), 2 * 300U);
}

TEST(HappensBefore, GivesACrowdBehindAnEventThatIsOpenAsManyEdgesAsKernels) {
  std::string text = crowd(300, "    - host_barrier: {}\n");
  text +=
      "  last:\n    - spin: {stream: b, duration: 1ms}\n    - event_record: {stream: b, event: e}\n"
      "    - stream_wait_event: {stream: a, event: e}\n    - host_barrier: {}\n";
  const Order order{text, OrderMode::Likely};
  EXPECT_TRUE(order.has("k0", "k299"));
  EXPECT_LE(order.result().edges.size(), 4 * 301U);
}

// Unordered kernels of many threads, then as many that follow them all, and again: the third
// round would join half a million clocks of 700 entries.
TEST(HappensBefore, CutsCrowdsThatFollowCrowds) {
  const std::string round = spin("a", "a") + "    - host_barrier: {}\n";
  const Order order{crowd(700, round + round)};
  EXPECT_FALSE(order.result().is_complete);
}

TEST(HappensBefore, TakesAsMuchForARankOfAThousandAsOfAHundred) {
  const auto entries = [](int ranks) {
    const Order order{"processes: " + std::to_string(ranks) +
                          "\nstreams: {s: {flags: non_blocking}}\n"
                          "buffers: {x: {memory: device, size: 4KiB}}\n"
                          "communicators: {a: {members: all_devices}}\nthreads:\n  main:\n"
                          "    - nccl_all_reduce: {comm: a, stream: s, buffer: x, type: float32}\n"
                          "    - nccl_all_reduce: {comm: a, stream: s, buffer: x, type: float32}\n"
                          "    - stream_synchronize: {stream: s}\n",
                      OrderMode::Likely};
    EXPECT_TRUE(order.result().is_finished);
    return static_cast<double>(order.result().clock_entries);
  };
  EXPECT_LT(entries(1024), 1.1 * 1024 / 128 * entries(128));
  // Of some numbers of ranks what they met with had as many entries of its own as a clock may have.
  for (int ranks = 256; ranks < 256 + 33; ++ranks) {
    EXPECT_LT(entries(ranks), 1.5 * ranks / 128 * entries(128)) << ranks;
  }
}

TEST(HappensBefore, UnrollsLoopsUpToTheLimit) {
  const std::string loop =
      "    - repeat: {times: 1000000, ops: [{spin: {stream: a, duration: 1us}}]}\n";
  const Order order{one_thread(loop)};
  EXPECT_FALSE(order.result().is_complete);
  EXPECT_FALSE(order.result().is_finished);
  EXPECT_EQ(order.result().nodes.size(), 2 * 20'000U) << "the call and the kernel";
}

TEST(HappensBefore, FollowsNcclsKernelsInsideOfAGraphOneByOne) {
  const auto finishes = [](const std::string& in_graph, const std::string& plain) {
    const Order order{
        "processes: 2\nstreams: {s: {flags: non_blocking}, t: {flags: non_blocking}}\ngraphs: {g: "
        "{}}\n"
        "buffers: {x: {memory: device, size: 4KiB}}\n"
        "communicators: {a: {members: all_devices}, b: {members: all_devices}}\nthreads:\n"
        "  r0: {process: 0, ops: [{graph_capture: {graph: g, stream: s, ops: [" +
        in_graph + "]}}, {graph_launch: {graph: g, stream: s}}]}\n  r1: {process: 1, ops: [" +
        plain + "]}\n"};
    return order.result().is_finished;
  };
  const auto reduce = [](const std::string& comm, const std::string& stream) {
    return "{nccl_all_reduce: {comm: " + comm + ", stream: " + stream +
           ", buffer: x, type: float32}}";
  };
  const std::string a = reduce("a", "s"), b = reduce("b", "s");
  EXPECT_TRUE(finishes(a + ", " + b, a + ", " + b));
  EXPECT_FALSE(finishes(a + ", " + b, b + ", " + a)) << "each holds back what the other waits for";
  EXPECT_TRUE(finishes(a + ", " + b, reduce("b", "t") + ", " + a))
      << "streams do not wait for each other";
  EXPECT_FALSE(finishes("{nccl_group: {ops: [" + a + ", " + b + "]}}", b + ", " + a));
}

}  // namespace
}  // namespace foretrace
