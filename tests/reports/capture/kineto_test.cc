// Traces of PyTorch's profiler: what is read, and what is said of files that are none.
#include "reports/capture/kineto.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "reports/capture/captured_scenario.h"
#include "reports/capture/captured_timeline.h"
#include "reports/timeline/timeline_check.h"
#include "scenarios/read/scenario.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::capture {
namespace {

using ::testing::HasSubstr;

/// Two kernels and an all-reduce between them on a stream of its own, as c10d makes them.
constexpr std::string_view kTrace = R"json({
"distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2},
"deviceProperties": [{"id": 0, "name": "NVIDIA H200", "numSms": 132}],
"traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 99.5, "dur": 5},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 100.25, "dur": 4, "args": {"External id": 7, "correlation": 11}},
{"ph": "X", "cat": "kernel", "name": "void at::native::mm_kernel<4>(int)", "pid": 0, "tid": 7, "ts": 110, "dur": 200.125, "args": {"device": 0, "stream": 7, "correlation": 11, "grid": [4, 2, 1]}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamWaitEvent", "pid": 1, "tid": 1, "ts": 120, "dur": 1, "args": {"External id": 8, "correlation": 12}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 130, "dur": 4, "args": {"External id": 8, "correlation": 13}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", "pid": 0, "tid": 17, "ts": 311, "dur": 100, "args": {"device": 0, "stream": 17, "correlation": 13, "grid": [16, 1, 1], "Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "Group size": 2, "dtype": "Float", "Process Group Ranks": "[0, 1]"}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamWaitEvent", "pid": 1, "tid": 1, "ts": 140, "dur": 1, "args": {"External id": 9, "correlation": 14}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 150, "dur": 4, "args": {"External id": 10, "correlation": 15}},
{"ph": "X", "cat": "kernel", "name": "adamw", "pid": 0, "tid": 7, "ts": 412, "dur": 50, "args": {"device": 0, "stream": 7, "correlation": 15, "grid": [1000, 1, 1]}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 1, "tid": 1, "ts": 160, "dur": 305, "args": {"correlation": 16}}
]})json";

Capture captured(std::string_view text) {
  Capture capture;
  capture.processes.push_back(parse_kineto(text, "trace.json", capture.names));
  return capture;
}

std::string refused(std::string_view text) {
  try {
    captured(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

std::string gzipped(std::string_view text) {
  z_stream stream{};
  deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(Kineto, TellsTheMemoryOfGpusWhereItWasProfiled) {
  const auto mark = [](int type, const char* at, int allocated) {
    return fmt::format(
        R"json(, {{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": {},
"args": {{"Total Reserved": 2097152, "Total Allocated": {}, "Bytes": 512, "Addr": 1, "Device Id": 0, "Device Type": {}}}}})json",
        at, allocated, type);
  };
  std::string text{kTrace};
  const auto end = text.rfind("\n]}");
  text.insert(end, mark(1, "130.5", 1024) + mark(1, "120.5", 512) + mark(0, "121", 7));
  const Timeline timeline = timeline_of(captured(text));
  ASSERT_EQ(timeline.memory.size(), 2u) << "the host's memory is left out";
  EXPECT_EQ(timeline.memory[0], (MemorySample{0, 0, 20'250, 512, 2097152}));
  EXPECT_EQ(timeline.memory[1], (MemorySample{0, 0, 30'250, 1024, 2097152}));
}

TEST(Kineto, KeepsCallsKernelsAndCollectivesInNanoseconds) {
  const Capture capture = captured(kTrace);
  const Process& process = capture.processes.front();
  EXPECT_EQ(process.rank, 1);
  EXPECT_EQ(process.gpu, "NVIDIA H200");
  EXPECT_EQ(process.sms, 132u);
  ASSERT_EQ(process.events.size(), 9u) << "the operation on the CPU is not kept";
  const Event& kernel = process.events[1];
  EXPECT_EQ(kernel.kind, EventKind::Kernel);
  EXPECT_EQ(kernel.begin, 110'000);
  EXPECT_EQ(kernel.end, 310'125);
  EXPECT_EQ(kernel.blocks, 8u);
  ASSERT_EQ(process.collectives.size(), 1u);
  EXPECT_EQ(process.collectives[0].input, 1000u);
}

TEST(Kineto, ReadsTheSameFromGzip) {
  EXPECT_EQ(captured(gzipped(kTrace)).processes.front().events.size(), 9u);
}

TEST(Kineto, KeepsTheNanosecondsOfLateClocks) {
  constexpr std::string_view kLate =
      R"([{"ph":"X","cat":"kernel","name":"k","tid":7,"ts":1790857026123456.789,"dur":0.001,"args":{"stream":7}}])";
  const Capture capture = captured(kLate);
  EXPECT_EQ(capture.processes[0].events[0].begin, 1'790'857'026'123'456'789);
  EXPECT_EQ(capture.processes[0].events[0].end, 1'790'857'026'123'456'790);
}

TEST(Kineto, SaysWhatIsWrongWithFilesThatAreNoTraces) {
  EXPECT_THAT(refused(""), HasSubstr("trace.json: byte"));
  EXPECT_THAT(refused(kTrace.substr(0, kTrace.size() / 2)),
              HasSubstr("this is no whole JSON file"));
  EXPECT_THAT(refused("{}"), HasSubstr("no 'traceEvents'"));
  EXPECT_THAT(refused(std::string(100, '[')), HasSubstr("64 deep"));
  const std::string packed = gzipped(kTrace);
  EXPECT_THAT(refused(packed.substr(0, packed.size() / 2)), HasSubstr("cut off"));
  EXPECT_THAT(refused(packed.substr(0, 10) + std::string(99, '\xff')), HasSubstr("damaged"));
}

TEST(Kineto, ReadsGzipWithZerosBehindIt) {
  const std::string packed = gzipped(kTrace);
  EXPECT_EQ(captured(packed + std::string(10'000, '\0')).processes.front().events.size(), 9u);
  EXPECT_EQ(refused(packed + gzipped("\n")), "") << "members follow each other";
  EXPECT_THAT(refused(packed + std::string(100, '\0') + "x"), HasSubstr("the gzip data"));
}

TEST(Kineto, ShortensNumbersInMessages) {
  const std::string digits(std::size_t{1} << 20, '1');
  const std::string begin =
      R"([{"ph":"X","cat":"kernel","name":"k","tid":7,"dur":1,"args":{"stream":7},"ts":)";
  for (const std::string& text : {begin + digits + "}]", begin + "1." + digits + "x}]"}) {
    const std::string message = refused(text);
    EXPECT_NE(message, "");
    EXPECT_LT(message.size(), 400u) << message;
  }
}

TEST(Kineto, ReadsTheWordsOfOtherVersionsAndVendors) {
  constexpr std::string_view kOld =
      R"json([{"ph":"X","cat":"Operator","name":"ProfilerStep#5","pid":"1","tid":"1","ts":0,"dur":900},
{"ph":"X","cat":"Runtime","name":"cudaLaunchKernel","pid":"1","tid":"1","ts":10,"dur":5,"args":{"correlation":1,"external id":3}},
{"ph":"X","cat":"Kernel","name":"gemm","pid":0,"tid":"stream 7","ts":20,"dur":390,"args":{"stream":7,"correlation":1,"grid":[64,1,1]}},
{"ph":"X","cat":"Memcpy","name":"Memcpy HtoD (Pageable -> Device)","pid":0,"tid":"stream 7","ts":430,"dur":3,"args":{"stream":7,"correlation":2}},
{"ph":"X","cat":"Memset","name":"Memset (Device)","pid":0,"tid":"stream 7","ts":440,"dur":3,"args":{"stream":7,"correlation":3}}])json";
  const Capture old = captured(kOld);
  std::vector<EventKind> kinds;
  for (const Event& event : old.processes[0].events) kinds.push_back(event.kind);
  EXPECT_EQ(kinds, (std::vector<EventKind>{EventKind::Iteration, EventKind::Call, EventKind::Kernel,
                                           EventKind::Copy, EventKind::Fill}));
  EXPECT_EQ(old.processes[0].events[1].external, 3u);
  constexpr std::string_view kIntel =
      R"json({"deviceProperties":[],"traceEvents":[
{"ph":"X","cat":"xpu_runtime","name":"urEnqueueKernelLaunch","pid":1,"tid":1,"ts":10,"dur":5,"args":{"correlation":1}},
{"ph":"X","cat":"kernel","name":"gemm_kernel","pid":0,"tid":64,"ts":20,"dur":9,"args":{"sycl queue":64,"device":0,"correlation":1}}]})json";
  const Capture intel = captured(kIntel);
  ASSERT_EQ(intel.processes[0].events.size(), 2u);
  EXPECT_EQ(intel.processes[0].events[1].lane, 64);
  EXPECT_THAT(scenario_of(intel, {}).text, HasSubstr("gemm_kernel, stream: s64")) << "no grid";
}

TEST(Kineto, GathersNoWordWithoutEnd) {
  constexpr std::size_t kLong = std::size_t{40} << 20;
  EXPECT_THAT(refused(gzipped("{\"traceEvents\": [\"" + std::string(kLong, 'a'))),
              HasSubstr("a text of more than 32 MiB"));
}

TEST(Kineto, RefusesNumbersThatAreNoTimes) {
  const auto event = [](std::string_view begin, std::string_view duration) {
    return R"([{"ph":"X","cat":"cuda_runtime","name":"c","tid":1,"ts":)" + std::string{begin} +
           R"(,"dur":)" + std::string{duration} + "}]";
  };
  EXPECT_EQ(refused(event("1", "2")), "");
  EXPECT_THAT(refused(event("1", "-2")), HasSubstr("event 1: 'dur' is '-2'"));
  EXPECT_THAT(refused(event("1e300", "2")), HasSubstr("'ts' is"));
  EXPECT_THAT(refused(event("99999999999999999999", "2")), HasSubstr("'ts' is"));
}

TEST(CapturedTimeline, HasALaneForEachStreamAndARegionForTheStep) {
  const Timeline timeline = timeline_of(captured(kTrace));
  EXPECT_EQ(what_is_wrong(timeline), std::nullopt);
  EXPECT_EQ(timeline.lanes.size(), 3u);
  ASSERT_EQ(timeline.regions.size(), 1u);
  EXPECT_EQ(timeline.regions[0].samples_ns.front(), 365'500) << "from the first operator";
}

TEST(CapturedScenario, ReadsAndSaysWhatWasGuessed) {
  const CapturedScenario scenario = scenario_of(captured(kTrace), {});
  EXPECT_TRUE(read_scenario(scenario.text, "a.yaml").has_value()) << scenario.text;
  EXPECT_THAT(scenario.text, HasSubstr("processes: 2"));
  EXPECT_THAT(scenario.text, HasSubstr("all_reduce: {id: all_reduce, stream: s7, group: group_0_1, "
                                       "buffer: part, size: 4000B, type: float32"));
  EXPECT_THAT(scenario.text, HasSubstr("spin: {id: mm_kernel, stream: s7, duration: 200125ns"));
  EXPECT_THAT(scenario.text, HasSubstr("work_wait: {work: work_0, stream: s7}"));
  EXPECT_EQ(scenario.captured_ns, 365'500);
  EXPECT_FALSE(scenario.guesses.empty());
}

TEST(CapturedScenario, GrowsToOtherNumbersOfProcesses) {
  ScenarioOptions options;
  options.processes = 8;
  EXPECT_THAT(scenario_of(captured(kTrace), options).text, HasSubstr("processes: 8"));
}

TEST(CapturedScenario, RefusesIterationsThatAreNotThere) {
  ScenarioOptions options;
  options.iteration = 3;
  EXPECT_THROW(scenario_of(captured(kTrace), options), UsageError);
  EXPECT_THROW(scenario_of(captured(R"({"traceEvents": []})"), {}), UsageError);
}

}  // namespace
}  // namespace foretrace::capture
