// What CUDA and NCCL refuse of a graph's capture. Seen on an H200 (driver 580): CUDA asks for work
// that nothing waits for, and not for streams that only waited. A wait for what nothing recorded
// yet succeeds; one for what an ended capture recorded fails, in a later capture and outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/reading.h"

namespace foretrace {
namespace {

using reading_test::problems_of;
using ::testing::HasSubstr;

/// A capture on stream a of `ops`, one per line from line 12, "; " between them.
std::string captured(const std::string& ops, const std::string& before = "") {
  std::string text =
      "schema_version: 1\nname: a\ndevices: 2\ngraphs: {g: {}}\n"
      "streams: {a: {}, b: {}, c: {}, d: {device: 1}}\n"
      "events: {of_a: {}, of_b: {}, of_c: {}, of_d: {}, old: {}, ring: {count: 2}}\n"
      "communicators: {world: {members: all_devices}}\n"
      "buffers: {x: {each: device, memory: device, size: 4KiB}}\nthreads:\n  main:\n" +
      before + "    - graph_capture: {graph: g, stream: a, ops: [\n";
  for (const char c : ops) text += c == ';' ? std::string{",\n"} : std::string(1, c);
  return text + "]}\n    - graph_launch: {graph: g, stream: a}\n    - device_synchronize: {}\n";
}
std::string work(const std::string& stream) {
  return "spin: {stream: " + stream + ", duration: 1us}";
}
std::string joins(const std::string& from, const std::string& to) {
  return "event_record: {event: of_" + from + ", stream: " + from +
         "}; stream_wait_event: {event: of_" + from + ", stream: " + to + "}";
}
std::string sum(const std::string& device, const std::string& stream) {
  return "nccl_all_reduce: {comm: world(" + device + "), stream: " + stream + ", send_buffer: x(" +
         device + "), recv_buffer: x(" + device + "), type: float32}";
}
std::string unjoined(const std::string& stream) {
  return "stream '" + stream +
         "' joined the capture on stream 'a' and is not joined back behind this: "
         "cudaErrorStreamCaptureUnjoined | record an event on it behind this, and let stream 'a' "
         "wait for that at the end of the graph_capture\n";
}

TEST(CheckCaptures, RefusesWorkOfAStreamThatIsNotJoinedBack) {
  EXPECT_EQ(problems_of(captured(joins("a", "b") + ";" + work("b"))),
            "14:1 error: " + unjoined("b"));
  EXPECT_EQ(problems_of(captured(joins("a", "b") + ";" + work("b") + ";" + joins("b", "a"))), "");
  EXPECT_EQ(problems_of(captured(joins("a", "b") + ";" + work("b") + ";" + joins("b", "a") + ";" +
                                 work("b"))),
            "17:1 error: " + unjoined("b"))
      << "what comes behind the record is not waited for";
}

TEST(CheckCaptures, TakesAStreamThatIsJoinedThroughAnotherOrOnlyWaited) {
  EXPECT_EQ(problems_of(captured(joins("a", "b") + ";" + work("b") + ";" + joins("b", "c") + ";" +
                                 work("c") + ";" + joins("c", "a"))),
            "");
  EXPECT_EQ(problems_of(captured(work("a") + ";" + joins("a", "b"))), "");
  EXPECT_EQ(problems_of(captured(joins("a", "b") + ";" + work("b") + ";" + joins("b", "c") + ";" +
                                 joins("b", "a"))),
            "");
}

TEST(CheckCaptures, TellsAStreamInALoopOnce) {
  EXPECT_EQ(
      problems_of(captured("repeat: {times: 3, ops: [" + joins("a", "b") + "," + work("b") + "]}")),
      "13:46 error: " + unjoined("b"));
}

const std::string kWaitsForOld = "stream_wait_event: {event: old, stream: a}";
const std::string kRecordsOld = "    - event_record: {event: old, stream: b}\n";
const std::string kIsolation =
    "error: stream 'a' is captured here, and event 'old' was not recorded in this graph_capture: "
    "cudaErrorStreamCaptureIsolation | wait for it before the graph_capture, or record it inside "
    "on a captured stream\n";

TEST(CheckCaptures, RefusesWhatIsNotCapturedAndEventsFromOutside) {
  EXPECT_EQ(problems_of(captured(work("c"))),
            "12:1 error: stream 'c' is not captured here: CUDA runs this at once, and not in the "
            "graph | let it wait for an event that is recorded on stream 'a' in this "
            "graph_capture, or move it out\n");
  EXPECT_EQ(problems_of(captured(kWaitsForOld, kRecordsOld)), "13:1 " + kIsolation);
}

TEST(CheckCaptures, TakesTheFirstWaitOfARing) {
  const auto ring = [](const std::string& event) {
    return "repeat: {index: i, times: 4, ops: [stream_wait_event: {event: " + event +
           ", stream: a};" + work("a") + ";" + joins("a", "b") + ";" + work("b") +
           ";event_record: {event: " + event + ", stream: b}]};";
  };
  EXPECT_EQ(problems_of(captured(ring("of_b") + joins("b", "a"))), "");
  EXPECT_EQ(problems_of(captured(ring("ring(i % 2)") + joins("b", "a"))), "");
}

TEST(CheckCaptures, TakesAWaitForAnEventThatIsRecordedLater) {
  EXPECT_EQ(problems_of(captured(kWaitsForOld) + kRecordsOld), "");
  EXPECT_EQ(problems_of(captured(kWaitsForOld + ";event_record: {event: old, stream: a}")), "");
}

TEST(CheckCaptures, RefusesAWaitForWhatALoopRecordedBehindTheCaptureBefore) {
  const std::string text = captured(kWaitsForOld, "    - repeat: {times: 2, ops: [\n");
  const std::string end = "]}\n    - graph_launch";
  std::string looped = text;
  looped.replace(text.find("    - graph_capture"), 6, "");
  looped.replace(looped.find(end), 2, "]}}, {event_record: {event: old, stream: b}}]}");
  looped.replace(looped.find("graph_capture"), 0, "{");
  EXPECT_EQ(problems_of(looped), "13:1 " + kIsolation);
}

TEST(CheckCaptures, KnowsWhichEventsAnotherThreadOfTheProcessRecords) {
  const std::string other = "  other:\n";
  EXPECT_EQ(problems_of(captured(kWaitsForOld) + other + kRecordsOld), "12:1 " + kIsolation);
  EXPECT_EQ(problems_of(captured("stream_wait_event: {event: ring(0), stream: a}") +
                        "    - event_record: {event: ring(0), stream: b}\n" + other +
                        "    - event_record: {event: ring(1), stream: b}\n"),
            "")
      << "another event of the same family";
}

TEST(CheckCaptures, TakesAWaitForWhatAnotherProcessRecords) {
  const auto recorded_by = [](const std::string& process) {
    return "schema_version: 1\nname: a\nprocesses: 2\ngraphs: {g: {}}\nstreams: {a: {}, b: {}}\n"
           "events: {old: {}}\nthreads:\n"
           "  main: {processes: [0], ops: [graph_capture: {graph: g, stream: a, ops: [\n" +
           kWaitsForOld + ",\n" + work("a") + "]}]}\n  other: {processes: [" + process +
           "], ops: [event_record: {event: old, stream: b}]}\n";
  };
  EXPECT_EQ(problems_of(recorded_by("1")), "");
  EXPECT_EQ(problems_of(recorded_by("0, 1")), "9:1 " + kIsolation);
}

TEST(CheckCaptures, RefusesToWaitForACapturedRecordBehindTheCapture) {
  const std::string recorded = captured(work("a") + ";event_record: {event: old, stream: a}");
  const std::string refused =
      "error: event 'old' was last recorded in a graph_capture that has ended (line 13), which "
      "nothing can wait for: cudaErrorInvalidValue | record it anew behind the graph_launch\n";
  for (const std::string wait : {"event_synchronize: {event: old}", "event_query: {event: old}",
                                 "stream_wait_event: {event: old, stream: b}"}) {
    EXPECT_EQ(problems_of(recorded + "    - " + wait + "\n"), "16:7 " + refused) << wait;
    EXPECT_EQ(problems_of(recorded + kRecordsOld + "    - " + wait + "\n"), "") << wait;
  }
  EXPECT_EQ(
      problems_of(recorded + "    - event_synchronize: {event: old}\n  other:\n" + kRecordsOld), "")
      << "the other thread's record may be the last one";
}

TEST(CheckCaptures, RefusesToWaitForARecordOfAnEarlierCapture) {
  EXPECT_EQ(
      problems_of(captured("event_record: {event: old, stream: a}") +
                  "    - graph_capture: {graph: g, stream: a, ops: [" + kWaitsForOld + "]}\n"),
      "15:50 error: event 'old' was last recorded in a graph_capture that has ended (line "
      "12), which nothing can wait for: cudaErrorInvalidValue | record it in this "
      "graph_capture before, or take an event for each\n");
}

TEST(CheckCaptures, RefusesAGroupThatIsCapturedInPart) {
  const auto group = [](const std::string& calls) { return "nccl_group: {ops: [" + calls + "]}"; };
  EXPECT_EQ(problems_of(captured(group(sum("0", "a") + ";" + sum("1", "d")))),
            "13:1 error: stream 'd' is not captured here, and stream 'a' of the same group and "
            "communicator 'world' is (line 12): NCCL refuses a group that is captured in part | "
            "let it wait for an event that is recorded on stream 'a' in this graph_capture, or "
            "move it out\n");
  EXPECT_EQ(
      problems_of(captured(joins("a", "d") + ";" + group(sum("0", "a") + ";" + sum("1", "d")) +
                           ";" + joins("d", "a"))),
      "");
  EXPECT_EQ(
      problems_of(captured(joins("a", "d") + ";" + group(sum("0", "a") + ";" + sum("1", "d")))),
      "15:1 error: " + unjoined("d"));
}

TEST(CheckCaptures, KnowsThatNcclJoinsTheStreamsOfACommunicator) {
  EXPECT_EQ(problems_of(captured(joins("a", "b") + ";" + joins("a", "d") + ";nccl_group: {ops: [" +
                                 sum("0", "b") + ";" + sum("0", "a") + ";" + sum("1", "d") + ";" +
                                 sum("1", "d") + "]};" + joins("d", "a"))),
            "");
}

}  // namespace
}  // namespace foretrace
