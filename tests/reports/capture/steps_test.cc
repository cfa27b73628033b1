// What an iteration is: delimited by what the GPU does, with all that the host does in it.
#include "reports/capture/steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "reports/capture/captured_scenario.h"
#include "reports/capture/captured_timeline.h"
#include "reports/capture/kineto.h"
#include "reports/timeline/timeline_check.h"
#include "scenarios/base/text/errors.h"
#include "scenarios/read/scenario.h"
#include "tests/reports/capture/trace_text.h"

namespace foretrace::capture {
namespace {

using test::TraceText;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using namespace std::string_literals;

Capture captured(const TraceText& trace) {
  Capture capture;
  capture.processes.push_back(parse_kineto(trace.text(), "trace.json", capture.names));
  return capture;
}

CapturedScenario scenario(const TraceText& trace, std::optional<std::size_t> iteration = {}) {
  ScenarioOptions options;
  options.iteration = iteration;
  CapturedScenario result = scenario_of(captured(trace), options);
  EXPECT_TRUE(read_scenario(result.text, "step.yaml").has_value()) << result.text;
  return result;
}

std::size_t count(const std::string& text, std::string_view word) {
  std::size_t found = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

/// Four steps of 20 kernels of 1 ms, of which the host is ahead by more than a step until a launch
/// waits for room behind 16 others.
TraceText ahead() {
  TraceText trace;
  double host = 0;
  double device = 100;
  std::vector<double> ends;
  double mark = 0;
  for (int step = 0; step < 4; ++step) {
    for (int i = 0; i < 20; ++i) {
      const double called = host;
      double took = 5;
      if (ends.size() >= 17) took = std::max(took, ends[ends.size() - 17] + 5 - called);
      trace.kernel(called, took, device, 1000);
      device += 1000;
      ends.push_back(device);
      host = called + took + 5;
    }
    trace.step(step, mark, host - mark);
    mark = host;
  }
  return trace;
}

TEST(Steps, AreWhatTheGpuTakesWhereTheHostIsAhead) {
  const CapturedScenario result = scenario(ahead());
  EXPECT_EQ(result.captured_ns, 20'000'000);
  EXPECT_EQ(count(result.text, "spin:"), 20U);
  EXPECT_EQ(count(result.text, "host_compute"),
            count(result.text, "host_compute: {duration: 5000ns"))
      << result.text;
  EXPECT_THAT(result.notes, Contains(HasSubstr("earlier work ran on for")));
  EXPECT_THAT(result.guesses, Contains(HasSubstr("room in the full launch queue")));
}

TEST(Steps, HaveTheHostsTimeBeforeItsFirstAndBehindItsLastCall) {
  TraceText trace;
  for (int step = 0; step < 2; ++step) {
    const double begin = 100'000.0 * step;
    trace.step(step, begin, 99'990);
    trace.kernel(begin + 60'000, 5, begin + 60'010, 30'000);
    trace.call("cudaDeviceSynchronize", begin + 60'020, 30'000);
  }
  EXPECT_EQ(scenario(trace, 0).captured_ns, 100'000'000) << "up to the next mark";
  const CapturedScenario last = scenario(trace);
  EXPECT_EQ(last.captured_ns, 99'990'000);
  EXPECT_THAT(last.text, HasSubstr("- host_compute: {duration: 60005000ns * $host / 100}"));
  EXPECT_EQ(count(last.text, "device_synchronize"), 2U);
}

TEST(Steps, TakeAllThatTheHostDidWhereNothingIsMarked) {
  TraceText trace;
  trace.event(R"("cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":0,"dur":3154)");
  trace.kernel(2'000, 5, 2'010, 300);
  EXPECT_EQ(scenario(trace).captured_ns, 3'154'000);
}

TEST(Steps, LeaveOutWhatWasQueuedBeforeTheTraceBegan) {
  TraceText trace;
  trace.kernel(0, 5, 463'000, 1000).kernel(20, 5, 464'001, 1000);
  const CapturedScenario result = scenario(trace);
  EXPECT_EQ(result.captured_ns, 2'001'000);
  EXPECT_THAT(result.notes, Contains(HasSubstr("earlier work ran on for 463.000 ms")));
}

TEST(Steps, TheLastThatHasWorkIsMeant) {
  TraceText trace;
  trace.step(1, 0, 500).kernel(10, 5, 20, 100).step(2, 500, 10);
  EXPECT_EQ(scenario(trace).captured_ns, 500'000);
  EXPECT_THROW(scenario(trace, 1), UsageError) << "it has no kernel";
  EXPECT_THROW(scenario(trace, 2), UsageError);
}

TEST(Steps, KeepWorkWhoseCallIsNotInTheTrace) {
  TraceText trace;
  trace.kernel(0, 5, 10, 100);
  trace.event(
      R"("cat":"kernel","name":"mystery","pid":0,"tid":7,"ts":110,"dur":90,"args":{"stream":7})");
  const CapturedScenario result = scenario(trace);
  EXPECT_EQ(count(result.text, "spin:"), 2U);
  EXPECT_THAT(result.guesses, Contains(HasSubstr("whose call is not in the trace")));
}

TEST(Steps, KeepWaitsForWhatIsNotInTheTrace) {
  TraceText trace;
  trace.kernel(0, 5, 10, 1000).kernel(10, 5, 64'010, 1000);
  const CapturedScenario result = scenario(trace);
  EXPECT_THAT(result.text, HasSubstr("id: waits_for_what_was_not_captured, stream: s7, duration: "
                                     "63000000ns"));
  EXPECT_THAT(result.notes, Contains(HasSubstr("63.000 ms in which queued work waited")));
}

TEST(Steps, GiveEachWorkToOneCallOfASharedNumber) {
  constexpr int kMany = 3000;
  TraceText trace;
  for (int i = 0; i < kMany; ++i) {
    trace.call("cudaLaunchKernel", 10.0 * i, 2, 1);
    trace.event(fmt::format(
        R"("cat":"kernel","name":"k","pid":0,"tid":7,"ts":{},"dur":5,"args":{{"stream":7,"correlation":1}})",
        10 * i + 4));
  }
  const CapturedScenario result = scenario(trace);
  EXPECT_EQ(count(result.text, "spin:"), std::size_t{kMany});
  EXPECT_THAT(result.text, Not(HasSubstr("waits_for_what"))) << "each has its own call";
}

TEST(StreamOrder, HasNoWaitThatTheCapturedTimesContradict) {
  TraceText trace;
  trace.kernel(100, 5, 110, 200, 7, "embedding");
  trace.call("cudaStreamWaitEvent", 320, 3)
      .kernel(330, 5, 340, 10'000, 21, "ncclKernel_SendRecv", 24);
  trace.call("cudaStreamWaitEvent", 340, 3);
  trace.kernel(360, 5, 380, 480, 7, "mlp").kernel(370, 5, 870, 480, 7, "mlp");
  trace.call("cudaStreamWaitEvent", 400, 3).kernel(410, 5, 10'343, 100, 7, "interaction");
  const CapturedScenario result = scenario(trace);
  EXPECT_EQ(count(result.text, "stream_wait_event"), 2U) << result.text;
  const auto mlp = result.text.find("id: mlp");
  const auto second = result.text.rfind("stream_wait_event: {stream: s7");
  EXPECT_LT(mlp, second) << "only what ran behind the exchange waits for it";
  EXPECT_THAT(result.guesses, Contains(HasSubstr("contradict")));
}

TEST(StreamOrder, IsAsCuptiSaysWhereItDoes) {
  TraceText trace;
  trace.kernel(0, 5, 10, 100, 20, "first");
  trace.call("cudaEventRecord", 12, 1);
  const int record = trace.last();
  trace.kernel(20, 5, 110, 400, 20, "second");
  trace.call("cudaStreamWaitEvent", 30, 1).waits(31, 24, 20, record);
  trace.kernel(40, 5, 111, 100, 24, "third");
  const std::string text = scenario(trace).text;
  const auto recorded = text.find("event_record: {event: order(0), stream: s20}");
  EXPECT_LT(text.find("id: first"), recorded);
  EXPECT_LT(recorded, text.find("id: second"));
  EXPECT_THAT(text, HasSubstr("stream_wait_event: {stream: s24, event: order(0)}"));
}

TEST(StreamOrder, ReadsHipsCalls) {
  TraceText trace;
  trace.kernel(0, 5, 10, 500, 3, "first");
  trace.call("hipStreamWaitEvent", 10, 1).kernel(20, 5, 512, 100, 4, "second");
  EXPECT_THAT(scenario(trace).text, HasSubstr("stream_wait_event: {stream: s4, event: order(0)}"));
}

TEST(CapturedKernels, TakeTheSamePartOfEveryGpu) {
  TraceText trace;
  trace.gpu("AMD Instinct MI300X", 304);
  trace.kernel(0, 5, 10, 1000, 3, "Cijk_Ailk_gemm", 608).kernel(10, 5, 1010, 1000, 3, "small", 8);
  const std::string text = scenario(trace).text;
  EXPECT_THAT(text, HasSubstr("blocks: 228, of: 304, scales_with: gemm}"));
  EXPECT_THAT(text, HasSubstr("blocks: 8}"));
  EXPECT_THAT(text, HasSubstr("captured_on: \"AMD Instinct MI300X\""));
}

TEST(CapturedKernels, ThatRanBesideEachOtherHaveRoom) {
  TraceText trace;
  trace.kernel(0, 5, 10, 1000, 7, "a", 132).kernel(10, 5, 30, 1000, 8, "b", 132);
  EXPECT_EQ(count(scenario(trace).text, "blocks: 49, of: 132"), 2U);
}

/// YAML ends a comment at more characters than a newline.
TEST(CapturedScenario, KeepsNamesOfGpusAndFilesInTheirLines) {
  for (const std::string& end : {"\n"s, "\r"s, "\xc2\x85"s, "\xe2\x80\xa8"s, "\xe2\x80\xa9"s}) {
    const std::string in_json = end == "\n" ? "\\n" : end == "\r" ? "\\r" : end;
    TraceText trace;
    trace.gpu("H200" + in_json + "environment: {NCCL_ALGO: Tree}" + in_json + "#", 132)
        .kernel(0, 5, 10, 100);
    Capture capture;
    capture.processes.push_back(
        parse_kineto(trace.text(), "a" + end + "environment: {NCCL_ALGO: Ring}" + end + "#.json",
                     capture.names));
    const std::string text = scenario_of(capture, {}).text;
    const auto read = read_scenario(text, "step.yaml");
    ASSERT_TRUE(read.has_value()) << text;
    EXPECT_TRUE(read->program.environment.empty()) << text;
  }
}

TEST(CapturedScenario, IsUtf8WhateverItsFilesAreCalled) {
  for (const std::string& name : {"\xff.json"s, std::string(199, 'h') + "\xc3\xa9.json"}) {
    TraceText trace;
    trace.kernel(0, 5, 10, 100);
    Capture capture;
    capture.processes.push_back(parse_kineto(trace.text(), name, capture.names));
    const std::string text = scenario_of(capture, {}).text;
    EXPECT_TRUE(read_scenario(text, "step.yaml").has_value()) << text;
  }
}

TEST(CaptureCheck, RefusesWhatIsNoOneRun) {
  const auto refusal = [](std::initializer_list<TraceText> traces) {
    Capture capture;
    int number = 0;
    for (const TraceText& trace : traces) {
      capture.processes.push_back(
          parse_kineto(trace.text(), fmt::format("{}.json", number++), capture.names));
    }
    try {
      check(capture);
    } catch (const UsageError& error) {
      return std::string{error.what()};
    }
    return std::string{};
  };
  TraceText one;
  one.rank(0).kernel(0, 5, 10, 100);
  TraceText other;
  other.rank(1).kernel(0, 5, 10, 100);
  EXPECT_EQ(refusal({one, other}), "");
  EXPECT_THAT(refusal({one, one}), HasSubstr("0.json and 1.json are both of rank 0"));
  TraceText nothing;
  nothing.event(R"("cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":0,"dur":3)");
  EXPECT_THAT(refusal({nothing}), HasSubstr("no kernel and no copy of a GPU, but cpu_op (1)"));
  TraceText late;
  late.rank(1).kernel(4e15, 5, 4e15 + 10, 100);
  TraceText early;
  early.rank(0).kernel(-4e15, 5, -4e15 + 10, 100);
  EXPECT_THAT(refusal({early, late}), HasSubstr("their clocks are 92593 days apart"));
  TraceText years;
  years.kernel(0, 5, 10, 4e15);
  EXPECT_THAT(refusal({years}), HasSubstr("46296 days between its first and its last event"));
}

TEST(CapturedTimeline, HasARepetitionForEachIteration) {
  const Timeline timeline = timeline_of(captured(ahead()));
  EXPECT_EQ(what_is_wrong(timeline), std::nullopt);
  ASSERT_EQ(timeline.regions.size(), 1U);
  EXPECT_EQ(timeline.regions[0].samples_ns.size(), 4U);
  EXPECT_EQ(timeline.regions[0].samples_ns.back(), 20'000'000);
}

TEST(CapturedTimeline, IsAMeasurementOfTheScenario) {
  const Capture capture = captured(ahead());
  const std::string text = scenario_of(capture, {}).text;
  const auto read = read_scenario(text, "step.yaml");
  ASSERT_TRUE(read.has_value());
  const Timeline timeline = timeline_of(capture, read->program, {});
  EXPECT_EQ(what_is_wrong(timeline), std::nullopt);
  EXPECT_EQ(timeline.origin.program_hash, read->program.hash);
  EXPECT_EQ(timeline.spans.size(), 40U) << "20 calls and 20 kernels of the last iteration";
  ASSERT_EQ(timeline.regions.size(), 1U);
  EXPECT_EQ(timeline.regions[0].samples_ns, std::vector<std::int64_t>{20'000'000});
}

}  // namespace
}  // namespace foretrace::capture
