#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "reports/timeline/timeline_json.h"
#include "sim/cli/commands.h"
#include "tests/reports/timeline_builder.h"
#include "tests/sim/cli/command_line.h"

namespace foretrace {
namespace {

using test::TimelineBuilder;
using testing::HasSubstr;
using Json = nlohmann::json;

class ExportCommand : public testing::Test {
 protected:
  ExportCommand() {
    for (const bool measured : {false, true}) {
      TimelineBuilder b{measured};
      const auto copy = b.op("memcpy_async", 7, "a,b", 4096);
      b.timeline.ops[copy].variant = "h2d pinned";
      const auto wait = b.op("stream_wait_event", 8);
      for (const std::uint32_t process : {0U, 1U}) {
        const auto host = b.host(process);
        const auto stream = b.stream("copy", process);
        b.span(copy, host, 1'000, 5'123);
        b.span(copy, stream, 8'001, 60'000, 1);
        b.span(wait, stream, 60'000, 61'000, 1);
      }
      write_timeline(b.timeline, directory_ / (measured ? kMeasuredFile : kPredictedFile));
    }
  }
  test::CommandRun run_export(std::vector<std::string> more) {
    more.insert(more.begin(), {"export", directory_.path().string(), "--to"});
    return test::run_command(add_export_command, more);
  }
  Json rank_file(const std::string& name) {
    return Json::parse(test::read_text(directory_ / "kineto" / "measured" / name));
  }
  static Json find(const Json& trace, const std::string& key, const std::string& value) {
    const auto& events = trace.at("traceEvents");
    const auto found =
        std::ranges::find_if(events, [&](const Json& e) { return e.value(key, "") == value; });
    return found == events.end() ? Json{} : *found;
  }
  test::TemporaryDirectory directory_;
};

TEST_F(ExportCommand, WritesEveryFormatThatItOffers) {
  const std::string help = test::run_command(add_export_command, {"export", "--help"}).out;
  const auto begin = help.find("\n  --to ") + 8;
  std::istringstream formats{help.substr(begin, help.find_first_of(" \n", begin) - begin)};
  std::size_t count = 0;
  for (std::string format; std::getline(formats, format, '|'); ++count) {
    const auto ran = run_export({format, "-o", (directory_ / format).string()});
    if (format == "chakra") {  // of a program: tests/cli/chakra_command_test.cc has one
      EXPECT_EQ(ran.exit_code, kWrongUse);
      EXPECT_THAT(ran.err, HasSubstr("--scenario FILE"));
      continue;
    }
    EXPECT_EQ(ran.exit_code, kDone);
    EXPECT_TRUE(std::filesystem::exists(directory_ / format)) << format;
  }
  EXPECT_GE(count, 3U) << help;
}

TEST_F(ExportCommand, WritesBothTimelinesIntoOnePerfettoTrace) {
  const auto ran = run_export({"perfetto"});
  EXPECT_EQ(ran.exit_code, kDone) << ran.err;
  const std::string bytes = test::read_text(directory_ / "trace.pftrace");
  EXPECT_THAT(bytes, HasSubstr("predicted: "));
  EXPECT_THAT(bytes, HasSubstr("measured: "));
  EXPECT_EQ(ran.out, "");
}

TEST_F(ExportCommand, WritesKinetoFilesPerOriginAndProcess) {
  EXPECT_EQ(run_export({"kineto"}).exit_code, kDone);
  EXPECT_TRUE(std::filesystem::exists(directory_ / "kineto" / "predicted" / "rank1.pt.trace.json"));
  const Json trace = rank_file("rank1.pt.trace.json");
  EXPECT_EQ(trace.at("distributedInfo").at("rank"), 1);
  EXPECT_EQ(trace.at("distributedInfo").at("world_size"), 2);

  const Json call = find(trace, "cat", "cuda_runtime");
  EXPECT_EQ(call.at("name"), "cudaMemcpyAsync");
  EXPECT_DOUBLE_EQ(call.at("ts"), 0);
  EXPECT_DOUBLE_EQ(call.at("dur"), 4.123);
  const Json copy = find(trace, "cat", "gpu_memcpy");
  EXPECT_EQ(copy.at("name"), "Memcpy HtoD (Pinned -> Device)");
  EXPECT_DOUBLE_EQ(copy.at("ts"), 7.001);  // 8001 - 1000 ns
  EXPECT_EQ(copy.at("args").at("bytes"), 4096);
  EXPECT_EQ(copy.at("args").at("correlation"), call.at("args").at("correlation"));
  EXPECT_EQ(find(trace, "cat", "cuda_sync").at("name"), "Stream Wait Event");
}

TEST_F(ExportCommand, BindsKinetoArrowsToTheirSlices) {
  run_export({"kineto"});
  const Json trace = rank_file("rank0.pt.trace.json");
  const Json start = find(trace, "ph", "s");
  const Json finish = find(trace, "ph", "f");
  EXPECT_EQ(start.at("id"), finish.at("id"));
  EXPECT_EQ(finish.at("bp"), "e");
  EXPECT_EQ(finish.at("ts"), find(trace, "cat", "gpu_memcpy").at("ts"));
}

TEST_F(ExportCommand, SpellsTheRankAsHtaSearchesForIt) {
  run_export({"kineto"});
  EXPECT_THAT(test::read_text(directory_ / "kineto" / "measured" / "rank1.pt.trace.json"),
              HasSubstr("\"rank\": 1,"));  // HTA: "rank":\s+(\d+)
}

/// Two regions, one inside the other, then a third; a wait for an event and for a stream.
Timeline with_regions() {
  TimelineBuilder b{true};
  const auto outer = b.op("region", 1, "step");
  b.op("region", 2, "forward");
  const auto kernel = b.op("gemm", 3);
  const auto record = b.op("event_record", 4);
  b.op("region", 5, "tail");
  const auto wait = b.op("stream_wait_event", 6);
  const auto sync = b.op("stream_synchronize", 7);
  b.timeline.ops[outer].inside = 3;
  b.timeline.ops[outer + 1].inside = 1;
  b.timeline.ops[outer + 4].inside = 2;
  b.timeline.ops[record].variant = "ready on compute";
  b.timeline.ops[wait].variant = "ready on comm";
  b.timeline.ops[sync].variant = "comm";
  const auto host = b.host();
  const auto compute = b.stream("compute");
  b.stream("comm");
  b.span(kernel, host, 0, 10);
  b.span(record, host, 10, 20);
  b.span(wait, host, 30, 40);
  b.span(sync, host, 40, 100);
  b.span(kernel, compute, 15, 60, 1);
  b.span(record, compute, 60, 60, 1);
  return b.timeline;
}

TEST_F(ExportCommand, GivesTheProfilersStepsAndWaitsToHta) {
  write_timeline(with_regions(), directory_ / kMeasuredFile);
  EXPECT_EQ(run_export({"kineto"}).exit_code, kDone);
  const Json trace = rank_file("rank0.pt.trace.json");
  EXPECT_EQ(find(trace, "name", "ProfilerStep#0").at("dur"), 0.02);
  EXPECT_EQ(find(trace, "name", "ProfilerStep#1").at("ts"), 0.03);
  EXPECT_TRUE(find(trace, "name", "ProfilerStep#2").is_null());
  EXPECT_EQ(find(trace, "name", "forward").at("dur"), 0.01);
  const Json record = find(trace, "name", "cudaEventRecord");
  const Json wait = find(trace, "name", "Stream Wait Event");
  EXPECT_EQ(wait.at("args").at("wait_on_cuda_event_record_corr_id"),
            record.at("args").at("correlation"));
  EXPECT_EQ(wait.at("args").at("wait_on_stream"), find(trace, "cat", "kernel").at("tid"));
  const Json sync = find(trace, "name", "Stream Sync");
  EXPECT_EQ(sync.at("args").at("stream"), wait.at("tid"));
  EXPECT_EQ(wait.at("ts"), 0.04);
  EXPECT_EQ(sync.at("dur"), 0.06);
}

TEST_F(ExportCommand, ShowsRegionsInATrackOfTheirOwnInPerfetto) {
  write_timeline(with_regions(), directory_ / kMeasuredFile);
  run_export({"perfetto"});
  const std::string bytes = test::read_text(directory_ / "trace.pftrace");
  EXPECT_THAT(bytes, HasSubstr("main: regions"));
  EXPECT_LT(bytes.find("\xba\x01\x04step"), bytes.find("\xba\x01\x07"
                                                       "forward"));
  EXPECT_THAT(bytes, HasSubstr("tail"));
}

TEST_F(ExportCommand, WritesOneCsvRowPerSpan) {
  const auto ran = run_export({"csv"});
  EXPECT_THAT(ran.out, HasSubstr("predicted,0,memcpy_async,h2d pinned,\"a,b\",7,0,1,1,0,stream,"
                                 "copy,8001,60000,4096\n"));
  EXPECT_EQ(std::ranges::count(ran.out, '\n'), 1 + 2 * 6);  // a heading; six spans per origin
}

TEST_F(ExportCommand, RefusesUnknownFormats) {
  EXPECT_EQ(run_export({"chakra"}).exit_code, kWrongUse);
}

}  // namespace
}  // namespace foretrace
