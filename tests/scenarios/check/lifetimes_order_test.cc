// Buffers that the program allocates and frees: graphs, several threads, other streams.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/scenarios/reading.h"

namespace foretrace {
namespace {

using reading_test::problems_of;

const std::string kMemoryHead =
    "schema_version: 1\nname: a\ngraphs: {g: {}}\nsignals: {go: {}, done: {}}\nevents: {e: "
    "{}}\nstreams: {s: {flags: non_blocking}, t: {flags: non_blocking}}\nbuffers: {x: {memory: "
    "device, size: 4KiB}}\nthreads:\n";  // line 9 is the first behind it
const std::string kCallMalloc = "    - malloc: {buffer: x}\n";
const std::string kCallFree = "    - free: {buffer: x}\n";
const std::string kCallMemset = "    - memset: {dst: x}\n";
std::string give(const std::string& name) { return "    - host_signal: {signal: " + name + "}\n"; }
std::string take(const std::string& name) { return "    - host_wait: {signal: " + name + "}\n"; }
std::string by_two_threads(const std::string& main, const std::string& other) {
  return kMemoryHead + "  main:\n" + main + "  other:\n" + other;
}
std::string used_behind(const std::string& at, int freed, const std::string& graph = "") {
  return at + " error: buffer 'x' is used here" + graph + ", and line " + std::to_string(freed) +
         " freed it | free it behind its last use\n";
}

TEST(CheckLifetimesInOrder, RefusesAUseByAThreadThatTheFreeIsToldTo) {
  EXPECT_EQ(
      problems_of(by_two_threads(kCallMalloc + kCallFree + give("go"), take("go") + kCallMemset)),
      used_behind("15:7", 11));
}

TEST(CheckLifetimesInOrder, SaysNothingWhereTheUseMayComeFirst) {
  EXPECT_EQ(
      problems_of(by_two_threads(kCallMalloc + give("go") + kCallFree, take("go") + kCallMemset)),
      "");
  EXPECT_EQ(problems_of(by_two_threads(kCallMalloc + give("go") + take("done") + kCallFree,
                                       take("go") + kCallMemset + give("done"))),
            "");
}

TEST(CheckLifetimesInOrder, SaysNothingWhereAnotherThreadMayAllocateBetween) {
  EXPECT_EQ(problems_of(by_two_threads(kCallMalloc + kCallFree + give("go"),
                                       take("go") + kCallMalloc + kCallMemset)),
            "");
  EXPECT_EQ(problems_of(kMemoryHead + "  main:\n" + kCallMalloc + kCallFree + give("go") +
                        "  other:\n" + take("go") + "    - host_compute: {duration: 1ms}\n" +
                        kCallMemset + "  third:\n" + kCallMalloc),
            "")
      << "nothing orders the third thread";
}

TEST(CheckLifetimesInOrder, RefusesASecondFreeAndASecondAllocationByAnotherThread) {
  EXPECT_EQ(
      problems_of(by_two_threads(kCallMalloc + kCallFree + give("go"), take("go") + kCallFree)),
      "15:7 error: buffer 'x' is freed here again: line 11 did it | free it once for each "
      "time that it is allocated\n");
  EXPECT_EQ(problems_of(by_two_threads(kCallMalloc + give("go"), take("go") + kCallMalloc)),
            "14:7 error: buffer 'x' is allocated here again: line 10 did it, and nothing freed it "
            "since | free it first, or declare a buffer for each\n");
}

TEST(CheckLifetimesInOrder, RefusesAUseThatIsOverBeforeTheOtherThreadAllocates) {
  EXPECT_EQ(problems_of(by_two_threads(take("go") + kCallMalloc, kCallMemset + give("go"))),
            "13:7 error: buffer 'x' is used here before anything allocates it | move its "
            "allocation before this\n");
  EXPECT_EQ(problems_of(by_two_threads(kCallMalloc, kCallMemset)), "") << "nothing orders the two";
}

TEST(CheckLifetimesInOrder, LooksIntoGraphs) {
  const std::string capture =
      "    - graph_capture: {graph: g, stream: s, ops: [memset_async: {stream: s, dst: x}]}\n";
  const std::string launch = "    - graph_launch: {graph: g, stream: s}\n";
  const std::string whole = "    - stream_synchronize: {stream: s}\n";
  EXPECT_EQ(
      problems_of(kMemoryHead + "  main:\n" + kCallMalloc + capture + launch + whole + kCallFree),
      "");
  EXPECT_EQ(problems_of(kMemoryHead + "  main:\n" + kCallMalloc + capture + launch + kCallFree +
                        launch + whole),
            used_behind("11:50", 13, ", in the graph that line 14 launches"));
  EXPECT_EQ(problems_of(kMemoryHead + "  main:\n" + capture + kCallMalloc + launch + whole),
            "10:50 error: buffer 'x' is used here before anything allocates it | move its "
            "allocation before this, or leave that out: what no operation allocates is there "
            "before the run\n");
}

TEST(CheckLifetimesInOrder, LooksAtOtherStreamsBehindFreeAsync) {
  const auto ops = [](const std::string& between) {
    return kMemoryHead +
           "  main:\n    - malloc_async: {buffer: x, stream: s}\n    - free_async: {buffer: x, "
           "stream: s}\n" +
           between + "    - memset_async: {dst: x, stream: t}\n";
  };
  EXPECT_EQ(problems_of(ops("    - event_record: {event: e, stream: s}\n"
                            "    - stream_wait_event: {event: e, stream: t}\n")),
            used_behind("14:7", 11));
  EXPECT_EQ(problems_of(ops("    - stream_synchronize: {stream: s}\n")), used_behind("13:7", 11));
  EXPECT_EQ(problems_of(ops("")).find("error"), std::string::npos) << "a race, and no more is sure";
}

std::string allocated_in_turns(int times) {
  return kMemoryHead + "  main:\n    - repeat: {times: " + std::to_string(times) +
         ", ops: [{malloc_async: {buffer: x, stream: s}}, {free_async: {buffer: x, stream: s}}, "
         "{event_record: {event: e, stream: s}}, {stream_wait_event: {event: e, stream: t}}, "
         "{memset_async: {dst: x, stream: t}}, {event_record: {event: e, stream: t}}, "
         "{stream_wait_event: {event: e, stream: s}}]}\n";
}

TEST(CheckLifetimesInOrder, LooksAtLongLoops) {
  EXPECT_NE(problems_of(allocated_in_turns(300))
                .find("error: buffer 'x' is used here, and line 10, column 75 freed it"),
            std::string::npos);
}

TEST(CheckLifetimesInOrder, NotesWhatItDoesNotLookAt) {
  const auto read = read_scenario(allocated_in_turns(1000), "test.yaml");
  ASSERT_TRUE(read);
  EXPECT_TRUE(std::ranges::any_of(read->warnings, [](const Diagnostic& one) {
    return one.severity == Severity::Note &&
           one.message ==
               "whether buffer 'x' is used, freed and allocated in turn was not looked at: 3000 "
               "operations do it";
  }));
}

}  // namespace
}  // namespace foretrace
