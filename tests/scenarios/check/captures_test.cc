// What CUDA and NCCL refuse of a graph's capture. That CUDA asks for work that nothing waits for,
// and not for streams that only waited, was seen on an H200 (driver 580).
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
      "events: {of_a: {}, of_b: {}, of_c: {}, of_d: {}, old: {}}\n"
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

TEST(CheckCaptures, RefusesWhatIsNotCapturedAndEventsFromOutside) {
  EXPECT_EQ(problems_of(captured(work("c"))),
            "12:1 error: stream 'c' is not captured here: CUDA runs this at once, and not in the "
            "graph | let it wait for an event that is recorded on stream 'a' in this "
            "graph_capture, or move it out\n");
  EXPECT_EQ(problems_of(captured("stream_wait_event: {event: old, stream: a}",
                                 "    - event_record: {event: old, stream: b}\n")),
            "13:1 error: stream 'a' is captured here, and event 'old' was not recorded in this "
            "graph_capture: cudaErrorStreamCaptureIsolation | wait for it before the "
            "graph_capture, or record it inside on a captured stream\n");
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
