#include "reports/timeline/timeline_json.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "scenarios/base/text/data_directory.h"
#include "scenarios/base/text/errors.h"
#include "tests/reports/timeline_builder.h"

namespace foretrace {
namespace {

using test::read_text;
using test::TemporaryDirectory;
using test::TimelineBuilder;

/// Every field differs from its default.
Timeline full_timeline() {
  TimelineBuilder b{true};
  Timeline& t = b.timeline;
  t.origin.versions = {{"cuda", "13.0"}, {"nccl", "2.28.3"}};
  t.origin.clock_error_bound_ns = 800;
  t.origin.launch_ns = 3850;
  t.origin.starts = {
      {1, "2026-11-21T03:10:23Z", "b1", "3f0c", {{1980, 3201, 33, "none"}, {}}, {}, {3162, 3301}}};
  t.outcome = {Outcome::Kind::Deadlock, {"process 1, thread main, hang.yaml:14: waits"}};
  const auto copy = b.op("memcpy_async", 12, "h2d \"quoted\"\n", 1 << 20);
  t.ops[copy].variant = "h2d pinned";
  t.ops[copy].loops = {20, 4};
  const auto all_reduce = b.op("nccl_all_reduce", 13);
  t.ops[all_reduce].loops = {20, 4};
  const auto step = b.op("region", 11, "step");
  t.ops[step].loops = {8};
  const auto host = b.host(3);
  t.lanes[host].node = 1;
  const auto stream = b.stream("comm(1)", 3, 1);
  t.lanes.push_back({LaneKind::Stream, 0, 3, 2, "copies"});
  const auto detail = intern(t, {.kernel = "ncclDevKernel_AllReduce",
                                 .algorithm = "Ring",
                                 .protocol = "LL128",
                                 .channels = 16,
                                 .low_factor = 0.91,
                                 .high_factor = 1.0625,
                                 .parameters = ParameterClass::Assumed,
                                 .decided_by = {{"nccl.port_share", -0.9}}});
  const auto call = b.span(copy, host, -5, 10, 0, 78);
  const auto kernel = b.span(all_reduce, stream, 100, 1LL << 40, 70000, 79);
  t.spans[kernel].detail = detail;
  t.flows = {{call, kernel, FlowKind::Signal}, {kernel, call, FlowKind::RecordWait}};
  RegionSamples& region = b.region(step, "step", {1000, 1010, 990}, 3, 7);
  region.per = 20;
  region.starts = {0, 0, 1};
  region.traced_ns = 1100;
  region.low_factor = 0.875;
  region.high_factor = 1.25;
  region.decided_by = {{"copy.h2d_bandwidth", -0.75}, {"copy.h2d_latency", 0.25}};
  region.learned_by = {"copy.h2d_bandwidth"};
  const auto kernel_row = b.op("library_kernel", 0, "gemm");
  t.ops[kernel_row].loops = {4};
  t.ops[kernel_row].captured = true;
  t.memory_peaks = {{3, 1, 1 << 20, 2 << 20}};
  t.lanes.push_back({LaneKind::Request, 0, 3, kNoDevice, "request 7"});
  t.serving = ServingFacts{.engine = "vllm",
                           .engines = 2,
                           .gpus = 8,
                           .requests = 9,
                           .output_tokens = 90,
                           .iterations = 11,
                           .preemptions = 1,
                           .waiting_share = 0.25,
                           .occupancy = {{1, 40, 3, 2}},
                           .limits = {{"memory", 0.75}},
                           .what_if = {{"memory twice as fast", 7, 9, 5, 1500.5}}};
  t.memory = {{3, 1, 40, 512, 2 << 20}, {3, 1, 90, 1 << 20, 2 << 20}};
  return t;
}

std::string text_of(const Timeline& timeline) {
  std::ostringstream out;
  write_timeline(timeline, out);
  return out.str();
}

std::string reason_for(const std::string& content) {
  TemporaryDirectory directory;
  const auto file = directory / "t.json";
  std::ofstream{file} << content;
  try {
    read_timeline(file);
  } catch (const UsageError& e) {
    const std::string reason = e.what();
    EXPECT_EQ(reason.find(file.string()), 0U) << reason;
    return reason.substr(file.string().size());
  }
  return "was read";
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(TimelineJson, RefusesAProgramsOperationBehindACapturedOne) {
  Timeline timeline = full_timeline();
  timeline.ops.push_back(timeline.ops.front());
  EXPECT_THAT(reason_for(text_of(timeline)),
              testing::HasSubstr("op 4 is behind a captured one and is none"));
  EXPECT_THAT(reason_for(with(text_of(full_timeline()), "[3,1,1048576,2097152]", "[3,1,1048576]")),
              testing::HasSubstr("a row of 'memory_peaks' has 3 values for 4 columns"));
}

TEST(TimelineJson, RoundTripsEveryField) {
  TemporaryDirectory directory;
  const Timeline timeline = full_timeline();
  write_timeline(timeline, directory / "t.json");
  const Timeline again = read_timeline(directory / "t.json");

  EXPECT_EQ(text_of(again), text_of(timeline));  // covers whatever is written
  EXPECT_EQ(again.ops[0].label, "h2d \"quoted\"\n");
  EXPECT_EQ(again.ops[0].variant, "h2d pinned");
  EXPECT_EQ(again.ops[0].loops, (std::vector<std::uint64_t>{20, 4}));
  EXPECT_EQ(program_ops(again), 3U) << "the last one is captured";
  EXPECT_EQ(again.lanes.back().kind, LaneKind::Request);
  EXPECT_EQ(again.serving, timeline.serving);
  EXPECT_EQ(again.memory, timeline.memory);
  EXPECT_EQ(again.memory_peaks, timeline.memory_peaks);
  EXPECT_EQ(again.lanes[1].device, 1U);
  EXPECT_EQ(again.lanes[0].device, kNoDevice);
  EXPECT_EQ(again.spans[0].instance, 78U);
  EXPECT_EQ(again.spans[0].begin_ns, -5);
  EXPECT_EQ(again.spans[1].part, 70000U) << "more than 16 bits";
  EXPECT_EQ(again.details, timeline.details);
  EXPECT_EQ(again.flows[0].kind, FlowKind::Signal);
  EXPECT_EQ(again.regions[0].traced_ns, 1100);
  EXPECT_EQ(again.origin.starts, timeline.origin.starts);
  EXPECT_EQ(again.origin.launch_ns, 3850);
  EXPECT_EQ(again.regions[0].starts, (std::vector<std::uint32_t>{0, 0, 1}));
  EXPECT_EQ(again.regions[0].decided_by, timeline.regions[0].decided_by);
  EXPECT_EQ(again.outcome.kind, Outcome::Kind::Deadlock);
  EXPECT_EQ(again.outcome.explanation, timeline.outcome.explanation);
}

TEST(TimelineJson, BeginsWithItsSchemaVersion) {
  EXPECT_EQ(text_of(full_timeline()).find("{\n\"schema_version\": 1,"), 0U);
}

TEST(TimelineJson, FollowsItsSchema) {
  if (std::system(FORETRACE_PYTHON " -c 'import jsonschema' 2>/dev/null") != 0) {
    GTEST_SKIP() << FORETRACE_PYTHON " has no jsonschema (python3-jsonschema)";
  }
  TemporaryDirectory directory;
  write_timeline(full_timeline(), directory / "t.json");
  const std::string command = FORETRACE_PYTHON " -m jsonschema -i '" +
                              (directory / "t.json").string() + "' '" + data_directory().string() +
                              "/reports/timeline.schema.json' 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST(TimelineJson, LeavesNoTemporaryFile) {
  TemporaryDirectory directory;
  write_timeline(full_timeline(), directory / "t.json");
  EXPECT_TRUE(std::filesystem::exists(directory / "t.json"));
  const std::filesystem::directory_iterator files{directory.path()};
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST(TimelineJson, ThrowsIoErrorWhereItCannotWrite) {
  TemporaryDirectory directory;
  EXPECT_THROW(write_timeline(full_timeline(), directory / "missing/t.json"), IoError);
}

TEST(TimelineJson, ReplacesInvalidUtf8InNames) {
  TimelineBuilder b{true};
  b.op("gemm", 1, "\xff");
  EXPECT_NE(text_of(b.timeline).find("\uFFFD"), std::string::npos);
}

TEST(TimelineReader, IgnoresUnknownKeysAndColumns) {
  TemporaryDirectory directory;
  TimelineBuilder b{false};
  b.span(b.op("gemm", 3), b.host(), 10, 20);
  auto text = with(text_of(b.timeline), "\"span_columns\": [",
                   "\"new\": {\"a\": [1.5]},\n\"span_columns\": [\"x\",");
  text = with(text, "[0,0,0,10,20,0,0]", "[99,0,0,0,10,20,0,0]");
  std::ofstream{directory / "t.json"} << text;
  const Timeline read = read_timeline(directory / "t.json");
  ASSERT_EQ(read.spans.size(), 1U);
  EXPECT_EQ(read.spans[0].begin_ns, 10);
}

TEST(TimelineReader, SaysWhyAFileIsNotATimeline) {
  const std::string good = text_of(full_timeline());
  EXPECT_NE(reason_for("").find("not JSON"), std::string::npos);
  EXPECT_NE(reason_for("name: overlap").find("not JSON"), std::string::npos);
  EXPECT_NE(reason_for(good.substr(0, good.size() / 2)).find("not JSON"), std::string::npos);
  EXPECT_NE(reason_for("[1, 2]").find("not a timeline"), std::string::npos);
  EXPECT_NE(reason_for("{\"kind\": 7}").find("'kind' is 7, and a text is needed"),
            std::string::npos);
  EXPECT_NE(reason_for(with(good, "\"timeline\"", "\"machine\"")).find("not a timeline"),
            std::string::npos);
  EXPECT_NE(reason_for(std::string(200'000, '[')).find("nested deeper"), std::string::npos);
}

TEST(TimelineReader, RefusesOtherSchemaVersions) {
  EXPECT_EQ(
      reason_for(with(text_of(full_timeline()), "\"schema_version\": 1", "\"schema_version\": 2")),
      ": schema_version 2, but this foretrace reads 1");
}

TEST(TimelineReader, RefusesATimelineWithoutProgramHash) {
  EXPECT_EQ(reason_for(with(text_of(full_timeline()), "\"9b1c\"", "\"\"")),
            ": the program hash is missing");
}

TEST(TimelineReader, RefusesIndicesThatPointNowhere) {
  const std::string good = text_of(full_timeline());
  EXPECT_EQ(reason_for(with(good, "[1,79,1,", "[4,79,1,")), ": a span's op is 4 of 4");
  EXPECT_EQ(reason_for(with(good, "[1,79,1,", "[1,79,4,")), ": a span's lane is 4 of 4");
  EXPECT_EQ(reason_for(with(good, "[0,1,3]", "[0,2,3]")), ": a flow goes to span 2 of 2");
  EXPECT_EQ(reason_for(with(good, "[1,79,1,", "[1,79,")),
            ": row 1 of 'spans': 6 numbers for 7 columns");
  EXPECT_EQ(reason_for(with(good, "[1,79,1,", "[-1,79,1,")),
            ": row 1 of 'spans': 'op' is -1, which is out of range");
  EXPECT_EQ(reason_for(with(good, "[1,79,1,", "[1.5,79,1,")),
            ": row 1 of 'spans': it may hold integers only");
}

TEST(TimelineReader, RefusesNumbersThatItWouldCutOff) {
  const std::string good = text_of(full_timeline());
  EXPECT_EQ(reason_for(with(good, "\"schema_version\": 1", "\"schema_version\": 4294967297")),
            ": schema_version 4294967297, but this foretrace reads 1");
  EXPECT_EQ(reason_for(with(good, "\"op\":2,", "\"op\":4294967298,")),
            ": row 0 of 'regions': 'op' is 4294967298: no number that is possible here");
  EXPECT_EQ(reason_for(with(good, "\"per\":20", "\"per\":2.5")),
            ": row 0 of 'regions': 'per' is 2.5: no number that is possible here");
  EXPECT_EQ(reason_for(with(good, "\"line\":12", "\"line\":-12345678901")),
            ": row 0 of 'ops': 'line' is -12345678901: no number that is possible here");
}

TEST(TimelineReader, RefusesWhatCannotBe) {
  const std::string good = text_of(full_timeline());
  EXPECT_EQ(reason_for(with(good, "[0,78,0,-5,10,", "[0,78,0,-5,-6,")),
            ": a span lasts from -5 ns to -6 ns");
  EXPECT_EQ(reason_for(with(good, "[0,78,0,-5,10,", "[0,78,0,-5,9223372036854775807,")),
            ": a span lasts from -5 ns to 9223372036854775807 ns");
  EXPECT_EQ(reason_for(with(good, "[0,78,", "[0,80,")), ": a span's instance is 80 of 80");
  EXPECT_EQ(reason_for(with(good, "\"loops\":[20,4]", "\"loops\":[0,4]")),
            ": a span's instance is 78 of 0");
  EXPECT_EQ(reason_for(with(good, "\"loops\":[20,4]", "\"loops\":[4611686018427387904,4]")),
            ": op 0 has too many loops");
  EXPECT_EQ(reason_for(with(good, "\"kind\":\"region\"", "\"kind\":\"gemm\"")),
            ": region 'step' points at a gemm of line 11");
  EXPECT_EQ(reason_for(with(good, "\"low_factor\":0.875", "\"low_factor\":-5")),
            ": region 'step' has a band from -5 to 1.25");
  EXPECT_EQ(reason_for(with(good, "\"low_factor\":0.91", "\"low_factor\":2")),
            ": a detail has a band from 2 to 1.0625");
  EXPECT_EQ(reason_for(with(good, "[1000,1010,990]", "[1000,-1,990]")),
            ": region 'step' has a sample that is no time");
  EXPECT_EQ(reason_for(with(good, "\"device\":1", "\"device\":4294967294")),
            ": lane 'comm(1)' is of device 4294967294: no process has so many");
  EXPECT_EQ(reason_for(with(good, "\"per\":20", "\"per\":0")), ": region 'step' is 'per' 0");
  EXPECT_EQ(reason_for(with(good, "[3162,3301]", "[3162,0]")),
            ": start 1 has a launch that took no time, or years");
  EXPECT_EQ(reason_for(with(good, "\"launch_ns\": 3850", "\"launch_ns\": -1")),
            ": a launch takes -1 ns");
  EXPECT_EQ(reason_for(with(good, "\"id\":1", "\"id\":0")), ": row 1 of 'ops': its 'id' is 0");
}

TEST(TimelineReader, RefusesWhatIsThereTwice) {
  const std::string good = text_of(full_timeline());
  EXPECT_EQ(reason_for(with(good, "\"regions\":", "\"lanes\":")),
            ": 'lanes' is there twice in one object");
  Timeline twice = full_timeline();
  twice.regions.push_back(twice.regions.front());
  EXPECT_EQ(reason_for(text_of(twice)), ": region 'step' is there twice (instance 7, process 3)");
}

TEST(TimelineReader, ReadsPlainFilesOnly) {
  EXPECT_THROW(
      {
        try {
          read_timeline("/dev/zero");
        } catch (const UsageError& e) {
          EXPECT_STREQ(e.what(), "/dev/zero: this is a device, and a plain file is needed");
          throw;
        }
      },
      UsageError);
}

TEST(TimelineReader, NamesAMissingFile) {
  try {
    read_timeline("nowhere/t.json");
    FAIL() << "read a file that does not exist";
  } catch (const UsageError& e) {
    EXPECT_STREQ(e.what(), "nowhere/t.json: there is no such file");
  }
}

}  // namespace
}  // namespace foretrace
