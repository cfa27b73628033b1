// Regions that end while all of their work may still run.
#include <gtest/gtest.h>

#include "tests/scenarios/reading.h"

namespace foretrace {
namespace {

using reading_test::problems_of;
using reading_test::scenario_with;

const std::string kKernel = "spin: {stream: s, duration: 1us}";

std::string region(const std::string& name, const std::string& ops) {
  return "region: {name: " + name + ", ops: [" + ops + "]}";
}
std::string behind(int line, const std::string& name, int from) {
  return std::to_string(line) + ":7 warning: region '" + name +
         "' ends while the work that it issued behind its last wait, from line " +
         std::to_string(from) +
         " on, may still run: of that it times issuing only | add stream_synchronize: {stream: s} "
         "before its end; if issuing is what you time, add issue_only: true\n";
}
std::string warning(int line, const std::string& name, const std::string& wait) {
  return std::to_string(line) + ":7 warning: region '" + name +
         "' ends while the work that it issued may still run: it times issuing only | add " + wait +
         " before its end; if issuing is what you time, add issue_only: true\n";
}

TEST(CheckRegions, WarnsOfOneThatWaitsForNothing) {
  EXPECT_EQ(problems_of(scenario_with(region("step", kKernel) + "\ndevice_synchronize: {}")),
            warning(18, "step", "stream_synchronize: {stream: s}"));
  EXPECT_EQ(problems_of(scenario_with(region("copy", "memcpy_async: {src: host, dst: x}"))),
            warning(18, "copy", "device_synchronize: {}"));
}

TEST(CheckRegions, WarnsWhereTheWaitIsBeforeTheWorkOrForAnIdleStream) {
  EXPECT_EQ(problems_of(scenario_with(region("step", "device_synchronize: {}, " + kKernel))),
            warning(18, "step", "stream_synchronize: {stream: s}"));
  EXPECT_EQ(problems_of(scenario_with(region("step", kKernel + ", stream_synchronize: {}"))),
            warning(18, "step", "stream_synchronize: {stream: s}"))
      << "the legacy default stream does not wait for a non-blocking one";
  EXPECT_EQ(
      problems_of(scenario_with(region("step", kKernel + ", event_synchronize: {event: e}"))),
      warning(18, "step", "stream_synchronize: {stream: s}") +
          "18:68 warning: event 'e' is recorded nowhere in this file | an event that was never "
          "recorded counts as complete: nothing waits here\n");
}

TEST(CheckRegions, SaysItOnceForEachPlaceHoweverOftenItIsRun) {
  const std::string loop = "repeat: {times: 3, ops: [" + region("step", kKernel) + "]}";
  EXPECT_EQ(problems_of(scenario_with(loop + "\n" + region("step", kKernel) + "\n" +
                                      region("other", kKernel))),
            "18:32 warning: region 'step' ends while the work that it issued may still run: it "
            "times issuing only | add stream_synchronize: {stream: s} before its end; if issuing "
            "is what you time, add issue_only: true\n" +
                warning(19, "step", "stream_synchronize: {stream: s}") +
                warning(20, "other", "stream_synchronize: {stream: s}"));
}

TEST(CheckRegions, IsQuietWhereAHostFunctionGivesTheSignalThatItWaitsFor) {
  EXPECT_EQ(
      problems_of("schema_version: 1\nname: x\nstreams: {s: {}}\nsignals: {done: {}}\nthreads: "
                  "{main: [{region: {name: round_trip, ops: [{host_func: {stream: s, signal: "
                  "done}}, {host_wait: {signal: done}}]}}]}\n"),
      "");
}

TEST(CheckRegions, IsQuietWhereSomeOfTheWorkIsWaitedFor) {
  for (const std::string& ops :
       {kKernel + ", stream_synchronize: {stream: s}", kKernel + ", device_synchronize: {}",
        kKernel + ", event_record: {event: e, stream: s}, event_synchronize: {event: e}",
        kKernel + ", spin: {duration: 1us}, stream_synchronize: {stream: s}",
        std::string{"memcpy: {src: x, dst: page}"}, std::string{"read_scalar: {src: x}"},
        std::string{"host_compute: {duration: 1us}"}, std::string{"device_synchronize: {}"}}) {
    EXPECT_EQ(problems_of(scenario_with(region("step", ops))), "") << ops;
  }
}

TEST(CheckRegions, WarnsOfWorkBehindTheLastWait) {
  const std::string wait = "stream_synchronize: {stream: s}";
  for (const std::string& ops :
       {kKernel + ", " + wait + ", " + kKernel, "memcpy: {src: host, dst: x}, " + kKernel,
        kKernel + ", " + wait + ", " + kKernel + ", stream_synchronize: {}"}) {
    EXPECT_EQ(problems_of(scenario_with(region("step", ops))), behind(18, "step", 18)) << ops;
  }
  EXPECT_EQ(problems_of(scenario_with(
                region("step", kKernel + ", " + wait + ", " + kKernel + ", " + wait))),
            "");
}

TEST(CheckRegions, NamesTheLineFromWhichOnNothingIsWaitedFor) {
  const std::string file = scenario_with("region:");
  EXPECT_EQ(problems_of(file + "        name: step\n        ops:\n          - " + kKernel +
                        "\n          - device_synchronize: {}\n          - " + kKernel + "\n"),
            behind(18, "step", 23));
}

TEST(CheckRegions, WarnsWhereALoopInsideWaitsForEachTurnButTheLast) {
  for (const std::string& turn :
       {"event_synchronize: {event: e}, " + kKernel + ", event_record: {event: e, stream: s}",
        kKernel + ", stream_synchronize: {stream: s}, " + kKernel}) {
    const std::string loop = "repeat: {times: 4, ops: [" + turn + "]}";
    EXPECT_EQ(problems_of(scenario_with(region("step", loop))), behind(18, "step", 18)) << turn;
    EXPECT_EQ(problems_of(scenario_with(region("step", loop + ", device_synchronize: {}"))), "")
        << turn;
  }
}

TEST(CheckRegions, IsQuietWhereTheNextExecutionWaitsForWhatThisOneLeaves) {
  const std::string step =
      region("step", kKernel + ", stream_synchronize: {stream: s}, " + kKernel);
  EXPECT_EQ(problems_of(scenario_with("repeat: {times: 4, ops: [" + step + "]}")), "");
  EXPECT_NE(
      problems_of(scenario_with("repeat: {times: 4, ops: [" + step + ", device_synchronize: {}]}")),
      "")
      << "that is outside of it";
}

TEST(CheckRegions, IsQuietWhereAnotherThreadWaitsAndTellsIt) {
  EXPECT_EQ(
      problems_of("schema_version: 1\nname: a\nstreams: {s: {}}\nsignals: {go: {}, done: {}}\n"
                  "threads:\n  main:\n    - region: {name: step, ops: [spin: {stream: s, "
                  "duration: 1us}, host_signal: {signal: go}, host_wait: {signal: done}]}\n"
                  "  other: [host_wait: {signal: go}, stream_synchronize: {stream: s}, "
                  "host_signal: {signal: done}]\n"),
      "");
}

TEST(CheckRegions, IsQuietWhereEachExecutionWaitsForTheOneBefore) {
  EXPECT_EQ(problems_of(scenario_with("repeat: {times: 4, ops: [" +
                                      region("step", "event_synchronize: {event: e}, " + kKernel +
                                                         ", event_record: {event: e, stream: s}") +
                                      "]}\ndevice_synchronize: {}")),
            "");
}

TEST(CheckRegions, WarnsWhereTheLoopWaitsOutsideOfTheRegion) {
  const std::string found = problems_of(scenario_with(
      "repeat: {times: 4, ops: [" + region("step", kKernel) + ", device_synchronize: {}]}"));
  EXPECT_EQ(found.substr(0, found.find(" ends")), "18:32 warning: region 'step'");
}

TEST(CheckRegions, IsQuietWhereIssuingIsMeant) {
  for (const char* name : {"issue", "issue_kernels", "launch_gemm", "calls_alone"}) {
    EXPECT_EQ(problems_of(scenario_with(region(name, kKernel))), "") << name;
  }
  EXPECT_EQ(
      problems_of(scenario_with("region: {name: step, issue_only: true, ops: [" + kKernel + "]}")),
      "");
}

TEST(CheckRegions, TakesTrueOrFalseForIssueOnly) {
  EXPECT_EQ(problems_of(scenario_with("region: {name: step, issue_only: 1, ops: []}")),
            "18:40 error: unknown value of issue_only '1' | known here: true, false\n");
  EXPECT_EQ(
      problems_of(scenario_with("region: {name: step, issue_only: false, ops: [" + kKernel + "]}")),
      warning(18, "step", "stream_synchronize: {stream: s}"));
}

TEST(CheckRegions, LooksAtWhatAGraphsLaunchAndACollectiveIssueToo) {
  const std::string found = problems_of(
      "schema_version: 1\nname: a\ngraphs: {g: {}}\nstreams: {s: {}}\n"
      "communicators: {w: {members: all_devices}}\nbuffers: {x: {memory: device, size: 4KiB}, "
      "y: {memory: device, size: 4KiB}}\nthreads:\n  main:\n"
      "    - graph_capture: {graph: g, stream: s, ops: [spin: {stream: s, duration: 1us}]}\n"
      "    - region: {name: graph, ops: [graph_launch: {graph: g, stream: s}]}\n"
      "    - device_synchronize: {}\n"
      "    - region: {name: sum, ops: [nccl_all_reduce: {comm: w, send_buffer: x, "
      "recv_buffer: y, type: float32}]}\n");
  EXPECT_NE(found.find("10:7 warning: region 'graph' ends"), std::string::npos) << found;
  EXPECT_NE(found.find("12:7 warning: region 'sum' ends"), std::string::npos) << found;
}

TEST(CheckRegions, DoesNotChangeTheProgramsHash) {
  const std::string plain = scenario_with(region("step", kKernel));
  const std::string said =
      scenario_with("region: {name: step, issue_only: true, ops: [" + kKernel + "]}");
  EXPECT_EQ(reading_test::read(plain).hash, reading_test::read(said).hash);
}

}  // namespace
}  // namespace foretrace
