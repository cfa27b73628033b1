// Decodes with protoc and a trimmed copy of Perfetto's schema, as Perfetto would.
#include "reports/export/perfetto_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <fstream>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <sstream>

#include "scenarios/base/text/data_directory.h"
#include "tests/reports/timeline_builder.h"

namespace foretrace {
namespace {

using test::TimelineBuilder;
using testing::HasSubstr;
using testing::Not;

/// What packets that hold others hold, in their place.
std::string unpacked(const std::string& trace) {
  std::string all;
  protozero::pbf_reader packets{trace};
  while (packets.next(1)) {
    const auto bytes = packets.get_view();
    protozero::pbf_reader fields{bytes};
    if (!fields.next(50)) {
      protozero::pbf_writer{all}.add_message(1, bytes.data(), bytes.size());
      continue;
    }
    const auto packed = fields.get_view();
    std::string text(std::size_t{1} << 20, '\0');
    uLongf size = text.size();
    EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(text.data()), &size,
                         reinterpret_cast<const Bytef*>(packed.data()), packed.size()),
              Z_OK);
    all.append(text, 0, size);
  }
  return all;
}

std::string written(const std::vector<const Timeline*>& timelines) {
  std::ostringstream out;
  write_perfetto(timelines, out);
  return out.str();
}

std::string decode(const std::vector<const Timeline*>& timelines) {
  test::TemporaryDirectory directory;
  {
    std::ofstream out{directory / "trace.pftrace", std::ios::binary};
    out << unpacked(written(timelines));
  }
  const std::string folder = data_directory().string() + "/tests/reports/export";
  const std::string command = FORETRACE_PROTOC " --decode=perfetto.protos.Trace -I '" + folder +
                              "' '" + folder + "/perfetto_trimmed.proto' < '" +
                              (directory / "trace.pftrace").string() + "' > '" +
                              (directory / "text").string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  return test::read_text(directory / "text");
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TimelineBuilder one_launch(bool measured) {
  TimelineBuilder b{measured};
  const auto op = b.op("gemm", 7, "mm", 4096);
  b.span(op, b.host(), 1'000, 5'000);
  b.span(op, b.stream("compute"), 8'000, 60'000, 1);
  return b;
}

TEST(PerfettoWriter, PutsPredictedAndMeasuredUnderRootTracksInThisOrder) {
  const auto predicted = one_launch(false);
  const auto measured = one_launch(true);
  const std::string text = decode({&predicted.timeline, &measured.timeline});
  // The first track is a root: no parent between its name and its ordering.
  EXPECT_THAT(text, HasSubstr("    uuid: 1\n    name: \"predicted: h200-nvswitch-8\"\n"
                              "    child_ordering: EXPLICIT\n    sibling_order_rank: 0\n"));
  EXPECT_THAT(text, HasSubstr("name: \"measured: 1 x NVIDIA H200\"\n"
                              "    child_ordering: EXPLICIT\n    sibling_order_rank: 1\n"));
  EXPECT_EQ(count(text, "name: \"process 0\"\n    parent_uuid: 1\n"), 1U);
  EXPECT_EQ(count(text, "name: \"compute\""), 2U);
}

TEST(PerfettoWriter, WritesSlicesFromTheRunsBeginWithTheirAnnotations) {
  const auto b = one_launch(true);
  const std::string text = decode({&b.timeline});
  // 8000 - 1000 and 60000 - 1000
  EXPECT_THAT(text, HasSubstr("  timestamp: 7000\n"));
  EXPECT_THAT(text, HasSubstr("  timestamp: 59000\n"));
  // The call and its kernel, two slices of what the GPU waits for, three of the critical path.
  EXPECT_EQ(count(text, "type: TYPE_SLICE_BEGIN"), 2U + 2U + 3U);
  EXPECT_EQ(count(text, "type: TYPE_SLICE_END"), 2U + 2U + 3U);
  EXPECT_EQ(count(text, "name: \"gemm mm\""), 2U);
  EXPECT_THAT(text, HasSubstr("categories: \"kernel\""));
  EXPECT_THAT(text, HasSubstr("      uint_value: 7\n      name: \"line\"\n"));
  EXPECT_THAT(text, HasSubstr("      uint_value: 4096\n      name: \"size_bytes\"\n"));
  EXPECT_THAT(text, Not(HasSubstr(": 0x")));  // protoc prints fields it does not know as numbers
}

TEST(PerfettoWriter, ShowsWhatAGpuWaitsForAndTheCriticalPath) {
  const auto b = one_launch(true);
  const std::string text = decode({&b.timeline});
  // Until 8000 the GPU waits for the call that ends at 5000; the path is the call, a launch, the
  // kernel.
  EXPECT_EQ(count(text, "name: \"what it waits for\""), 1U);
  EXPECT_EQ(count(text, "name: \"launch-bound host\""), 1U);
  EXPECT_EQ(count(text, "name: \"kernels\""), 1U);
  EXPECT_EQ(count(text, "name: \"critical path\""), 1U);
  EXPECT_EQ(count(text, "name: \"waiting\""), 1U);
  EXPECT_EQ(count(text, "name: \"process 0: gemm mm\""), 2U);
}

TEST(PerfettoWriter, DrawsAnArrowFromTheCallToItsKernel) {
  const auto b = one_launch(true);
  const std::string text = decode({&b.timeline});
  EXPECT_EQ(count(text, "    flow_ids: 1\n"), 1U);
  EXPECT_EQ(count(text, "    terminating_flow_ids: 1\n"), 1U);
  EXPECT_LT(text.find("    flow_ids: 1\n"), text.find("    terminating_flow_ids: 1\n"));
}

TEST(PerfettoWriter, PacksALongTraceAsPerfettoUnpacksIt) {
  TimelineBuilder b{true};
  const auto op = b.op("gemm", 7, "mm", 4096);
  const auto lane = b.stream("compute");
  for (int i = 0; i < 20'000; ++i)
    b.span(op, lane, 10 * i, 10 * i + 5, 1, static_cast<std::uint64_t>(i));
  const std::string trace = written({&b.timeline}), text = decode({&b.timeline});
  EXPECT_EQ(count(text, "categories: \"kernel\""), 20'000U);
  EXPECT_EQ(count(text, "compressed_packets"), 0U);
  EXPECT_LT(trace.size(), unpacked(trace).size() / 4);
}

TEST(PerfettoWriter, NestsAndMovesWhatDoesNotNestToAFurtherTrack) {
  TimelineBuilder b{true};
  const auto op = b.op("gemm", 7);
  const auto lane = b.stream("compute");
  b.span(op, lane, 0, 100, 1, 0);
  b.span(op, lane, 10, 20, 1, 1);    // inside
  b.span(op, lane, 90, 110, 1, 2);   // crosses the end: on a second track
  b.span(op, lane, 110, 120, 1, 3);  // fits on the first
  const std::string text = decode({&b.timeline});
  EXPECT_EQ(count(text, "name: \"compute\""), 2U);
  EXPECT_EQ(count(text, "categories: \"kernel\""), 4U);
}

TEST(PerfettoWriter, DrawsMemoryAsTwoCurvesOfBytesBelowItsDevice) {
  TimelineBuilder b = one_launch(false);
  b.timeline.memory = {{0, 0, 1'000, 4096, 2097152}, {0, 0, 3'000, 512, 2097152}};
  const std::string text = decode({&b.timeline});
  EXPECT_EQ(count(text, "unit: UNIT_SIZE_BYTES"), 2U);
  EXPECT_THAT(text, HasSubstr("name: \"memory: allocated\""));
  EXPECT_THAT(text, HasSubstr("name: \"memory: reserved\""));
  EXPECT_EQ(count(text, "type: TYPE_COUNTER"), 4U);
  EXPECT_EQ(count(text, "counter_value: 2097152"), 2U);
  EXPECT_THAT(text, HasSubstr("timestamp: 2000\n  trusted_packet_sequence_id: 1\n  track_event {\n"
                              "    type: TYPE_COUNTER"))
      << "since the run's first span";
}

}  // namespace
}  // namespace foretrace
